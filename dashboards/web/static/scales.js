// The parameters of trials, and where their values stand on an axis from 0 to 1.

import { colour } from "./colours.js";
import { count, percent, rate, score, tensors, words } from "./format.js";

const side = (name, title) => ["attention", "ffn"].map((at) => ({ name: `${at}_${name}`, title: `${title}, ${at === "ffn" ? "FFN" : "attention"}`, value: (trial) => trial[`${at}_${name}`] }));
const numbers = (some, show, isLog = false) => some.map((one) => ({ ...one, isNumber: true, show, isLog }));

/** What a trial is by; those of parallel coordinates are its four dimensions at either side, its share, rates and score. */
export const PARAMETERS = [
  ...side("form", "form").map((one) => ({ ...one, isMain: true })),
  ...side("write", "modified").map((one) => ({ ...one, isMain: true, words: tensors })),
  ...side("insertion", "insertion").map((one) => ({ ...one, isMain: true })),
  ...side("gate", "composition").map((one) => ({ ...one, isMain: true })),
  ...side("heads", "heads"),
  ...side("activation", "activation"),
  ...numbers(side("bottleneck", "bottleneck"), count, true),
  ...numbers([{ name: "stored_parameters", title: "parameters", value: (trial) => trial.stored_parameters }], count, true),
  ...numbers([{ name: "attention_share", title: "share at attention", value: (trial) => trial.attention_share, isMain: true }], (value) => percent(value, 0)),
  ...numbers(side("learning_rate", "rate"), rate, true).map((one) => ({ ...one, isMain: true })),
  ...numbers([{ name: "score", title: "score", value: (trial) => trial.score ?? trial.last_score, isMain: true }], score),
];

const NONE = "none";
const BELOW = -0.13;
/** Where trials stand that have no such value. */

/** Trials of one category are spread sideways, each always in the same place. */
const spread = (number) => ((number * 0.618034) % 1) - 0.5;

/** How a parameter of some trials stands on an axis: {at(trial), ticks: [[place, text]], keeps(low, high)}. */
export function scaleOf(rows, parameter) {
  const found = rows.map(parameter.value);
  const hasNone = found.some((value) => value === null || (parameter.isLog && value <= 0));
  const ticks = hasNone ? [[BELOW, NONE]] : [];
  if (!parameter.isNumber) {
    const names = [...new Set(found.filter((value) => value !== null))].sort();
    const places = new Map(names.map((name, place) => [name, names.length > 1 ? place / (names.length - 1) : 0.5]));
    const room = 0.5 / Math.max(4, names.length);
    for (const [name, place] of places) ticks.push([place, (parameter.words ?? words)(name)]);
    return {
      ticks,
      at: (trial) => (places.get(parameter.value(trial)) ?? BELOW) + (places.has(parameter.value(trial)) ? room : 0.06) * spread(trial.number),
      keeps: (low, high) => `=${[...places, [NONE, BELOW]].filter(([, place]) => place >= low && place <= high).map(([name]) => name).join("|")}`,
    };
  }
  const way = parameter.isLog ? { to: Math.log10, from: (value) => 10 ** value } : { to: (value) => value, from: (value) => value };
  const there = found.filter((value) => value !== null && !(parameter.isLog && value <= 0)).map(way.to);
  const [least, most] = there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
  const wide = most - least;
  const value = (place) => way.from(least + place * wide);
  for (const place of wide > 0 ? [0, 0.25, 0.5, 0.75, 1] : [0.5]) if (there.length) ticks.push([place, parameter.show(wide > 0 ? value(place) : way.from(least))]);
  const place = (given) => (given === null || (parameter.isLog && given <= 0) ? BELOW : wide > 0 ? (way.to(given) - least) / wide : 0.5);
  return {
    ticks,
    at: (trial) => place(parameter.value(trial)),
    keeps: (low, high) => (high < 0 ? `=${NONE}` : `${Number(value(Math.max(0, low)).toPrecision(4))}~${Number(value(Math.min(1, high)).toPrecision(4))}`),
  };
}

/**
 * Where trials stand by their sizes: {at(trial), axis}. Most spend all of a budget, which would be one vertical line: where
 * the middle half of the sizes differ by less than a twentieth, trials have equal spacing, ordered by size and number.
 */
export function sizeScale(trials) {
  const sorted = trials.filter((one) => one.stored_parameters > 0).sort((one, other) => one.stored_parameters - other.stored_parameters || one.number - other.number);
  const size = (part) => sorted[Math.round(part * (sorted.length - 1))].stored_parameters;
  if (sorted.length < 2 || size(0.75) > 1.05 * size(0.25)) {
    const isWide = sorted.length > 1 && size(1) > 10 * size(0);
    return { at: (trial) => trial.stored_parameters || null, axis: { title: "stored parameters", ...(isWide ? { type: "log", dtick: "D2" } : { tickformat: ",", nticks: 5 }) } };
  }
  const places = new Map(sorted.map((trial, place) => [trial, place]));
  const tickvals = [...new Set([0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * (sorted.length - 1))))];
  const ticktext = tickvals.map((place) => count(sorted[place].stored_parameters));
  return { at: (trial) => places.get(trial) ?? null, axis: { title: "trials ordered by stored parameters (equal spacing)", tickvals, ticktext, tickangle: 0, tickfont: { size: 10.5 }, zeroline: false } };
}

/** The complete trials whose value is above those of all that are no larger, from the smallest. */
export function frontOf(rows, size, value) {
  let best = -Infinity;
  return rows
    .filter((one) => one.state === "complete" && one.replicate_of === null)
    .sort((one, other) => size(one) - size(other) || value(other) - value(one))
    .filter((one) => value(one) > best && ((best = value(one)), true));
}

export const frontLine = (steps, at, value) => ({ type: "scatter", mode: "lines", name: "Pareto front", x: steps.map(at), y: steps.map(value), line: { shape: "hv", color: colour("quiet"), width: 1.2 }, hoverinfo: "skip" });

/** The share of trials that score at most so much, as a line. */
export function distribution(name, scores, more = {}) {
  const x = [...scores].sort((one, other) => one - other);
  return { type: "scatter", mode: "lines", name, x, y: x.map((_, place) => (place + 1) / x.length), hovertemplate: `${name}<br>%{y:.0%} score at most %{x:.4f}<extra></extra>`, ...more, line: { shape: "hv", width: 2, ...more.line } };
}

export const SHARE_AXIS = { title: "share of trials", tickformat: ".0%", range: [0, 1.02] };

/** Brushes of a text: ``name=a|b;name:low~high``. Each says whether it keeps a trial. */
export function brushes(text) {
  return text.split(";").flatMap((part) => {
    const [, name, is, kept] = part.match(/^(\w+):(=?)(.*)$/) ?? [];
    const parameter = PARAMETERS.find((one) => one.name === name);
    if (!parameter) return [];
    if (is) {
      const names = kept.split("|");
      return [{ parameter, text: part, said: names.map(parameter.words ?? words).join(", "), keeps: (trial) => names.includes(String(parameter.value(trial) ?? NONE)) }];
    }
    const [low, high] = kept.split("~").map((end) => (end === "" ? NaN : Number(end)));
    const isIn = (value) => value !== null && !(value < low * (1 - 1e-3 * Math.sign(low))) && !(value > high * (1 + 1e-3 * Math.sign(high)));
    return [{ parameter, text: part, said: `${Number.isNaN(low) ? "" : parameter.show(low)} to ${Number.isNaN(high) ? "" : parameter.show(high)}`, keeps: (trial) => isIn(parameter.value(trial)) }];
  });
}

/** A text of brushes with another one, in the place of one of the same parameter. */
export const brushed = (text, name, kept) => [...brushes(text).filter((one) => one.parameter.name !== name).map((one) => one.text), ...(kept ? [`${name}:${kept}`] : [])].join(";");
