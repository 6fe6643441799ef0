// What several pages show alike.

import { keepLinks, onChange, pick, picks, write } from "./address.js";
import { formColour } from "./colours.js";
import { ask, follow, Trials } from "./data.js";
import { fill, h, told } from "./dom.js";
import { count, estimate, percent, rate, score, words } from "./format.js";
import { plain } from "./plots.js";
import { remarkOn, tagList } from "./remarks.js";
import { Table } from "./table.js";

export const STATES = ["complete", "pruned", "failed", "running", "queued"];

/** How many trials are in every state that has any. */
export function states(counts) {
  const found = STATES.filter((state) => counts[state]).map((state) => h("span", { class: `state-${state}` }, `${count(counts[state])} ${state}`));
  return found.length === 0 ? "none yet" : found.flatMap((one, place) => (place ? [", ", one] : [one]));
}

/** A bar of all trials by state. */
export function bar(counts, planned) {
  const all = Math.max(1, planned ?? 0, STATES.reduce((sum, state) => sum + counts[state], 0));
  const parts = STATES.filter((state) => counts[state] && state !== "queued").map((state) => {
    const part = h("i", { class: `bg-${state}`, title: `${counts[state]} ${state}` });
    part.style.width = `${(100 * counts[state]) / all}%`;
    return part;
  });
  const ended = counts.complete + counts.pruned + counts.failed;
  return h("div", { class: "bar", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": all, "aria-valuenow": ended, "aria-label": "trials that have ended" }, parts);
}

export const tile = (title, value, ...rest) => h("div", { class: "tile" }, h("span", {}, title), h("b", {}, value), h("span", {}, rest));

export const trialLink = (base, number) => h("a", { href: `${base}trial/?number=${number}` }, String(number));

export const formTag = (form) => {
  const dot = h("span", { class: "swatch", "aria-hidden": "true" });
  dot.style.background = formColour(form);
  return form ? h("span", {}, dot, words(form)) : h("span", { class: "quiet" }, "–");
};

export const isPublished = (trial) => trial.method !== null;
export const newest = (trial) => trial.score ?? trial.last_score;

/** The score of a trial; of one that was trained again with how often, of one that is not complete with the step. */
export function scoreText(trial) {
  const value = newest(trial);
  if (value === null) return "–";
  if (trial.state !== "complete") return `${score(value)} @ ${trial.steps}`;
  return trial.seeds ? `${score(value)} ×${trial.seeds}` : score(value);
}

/** The columns that trials have in every table. */
export function trialColumns(trials, base) {
  const found = (name) => (trial) => trial[name];
  return {
    place: { name: "place", title: "#", isNumber: true, value: (one) => trials.places.get(one.number) ?? null, cell: (one) => trials.places.get(one.number) ?? "", hint: "rank in the study" },
    number: { name: "number", title: "Trial", isMain: true, isNumber: true, value: found("number"), cell: (one) => trialLink(base, one.number) },
    state: { name: "state", title: "State", value: found("state"), cell: (one) => h("span", { class: `state-${one.state}` }, one.state, one.state === "running" && remarkOn(trials, one.number).is_to_stop ? ", stop requested" : "") },
    score: { name: "score", title: "Score", isMain: true, isNumber: true, value: newest, cell: scoreText, hint: "on validation; ×4: mean of four seeds" },
    estimate: { name: "estimate", title: "Estimate", isNumber: true, value: (one) => trials.estimates.get(one.number)?.mean ?? null, cell: (one) => { const known = trials.estimates.get(one.number); return known ? estimate(known.mean, known.reach) : "–"; }, hint: "expected score if it is trained again, with its 95% interval" },
    method: { name: "method", title: "Method", value: (one) => one.method ?? "discovered", cell: (one) => told(one.method ?? (one.replicate_of === null ? "discovered" : `replicate of ${one.replicate_of}`)) },
    description: { name: "description", title: "Configuration", isMain: true, value: found("description"), cell: (one) => told(one.description), kind: "words" },
    parameters: { name: "parameters", title: "Parameters", isNumber: true, value: found("stored_parameters"), cell: (one) => count(one.stored_parameters) },
    share: { name: "share", title: "At attention", isNumber: true, value: found("attention_share"), cell: (one) => percent(one.attention_share, 0) },
    attentionForm: { name: "attention_form", title: "Attention", value: found("attention_form"), cell: (one) => formTag(one.attention_form), kind: "tight" },
    ffnForm: { name: "ffn_form", title: "FFN", value: found("ffn_form"), cell: (one) => formTag(one.ffn_form), kind: "tight" },
    attentionRate: { name: "attention_rate", title: "lr attention", isNumber: true, value: found("attention_learning_rate"), cell: (one) => rate(one.attention_learning_rate) },
    ffnRate: { name: "ffn_rate", title: "lr FFN", isNumber: true, value: found("ffn_learning_rate"), cell: (one) => rate(one.ffn_learning_rate) },
    tags: { name: "tags", title: "Tags", isOptional: true, value: (one) => remarkOn(trials, one.number).tags.join(", "), cell: (one) => tagList(remarkOn(trials, one.number).tags), kind: "tight" },
    note: { name: "note", title: "Note", isHidden: true, value: (one) => remarkOn(trials, one.number).note, cell: (one) => told(remarkOn(trials, one.number).note), kind: "words" },
    reason: { name: "reason", title: "Why", value: found("reason"), cell: (one) => told(one.reason ?? ""), kind: "words" },
  };
}

/** What a point of a plot says of its trial. */
export const hover = (trial) => `trial ${trial.number}, ${plain(trial.method ?? "discovered")}, ${trial.state}<br>${plain(wrapped(trial.description)).replaceAll("\n", "<br>")}<br>score ${scoreText(trial)}, ${count(trial.stored_parameters)} parameters`;

function wrapped(text) {
  return text.replace(/(.{50,70}?)\s/g, "$1\n").slice(0, 240);
}

/** A frame of the server as a table, filled; the ends of an interval stand as one column. Its trials can be marked where that is wanted. */
export function frameTable(name, caption, { columns: names, rows, texts }, base, { isMarked = false } = {}) {
  const entries = rows.map((row, line) => ({ ...Object.fromEntries(names.map((name, place) => [name, row[place]])), texts: texts[line] }));
  const hasInterval = names.includes("low") && names.includes("high");
  const shown = names.filter((name) => name !== "planned" && !(hasInterval && name === "high"));
  const columns = shown.map((name) => {
    const place = names.indexOf(name);
    const isInterval = hasInterval && name === "low";
    const isNumber = isInterval || entries.some((row) => typeof row[name] === "number");
    const text = (row) => (isInterval && row.low !== null ? `${row.texts[place]} to ${row.texts[names.indexOf("high")]}` : row.texts[place]);
    const cell = (row) => (name === "trial" && row[name] !== null && base !== null ? trialLink(base, row[name]) : told(text(row)));
    return { name, title: isInterval ? "95%" : words(name), isNumber, value: (row) => row[name], cell, kind: entries.some((row) => String(row[name] ?? "").length > 40) ? "words" : "tight" };
  });
  const table = new Table(columns, { caption, name, number: isMarked && names.includes("trial") ? (row) => row.trial : null });
  table.show(entries);
  return table;
}

/** The trials that are marked, with links to compare them. */
export function pickedBar(base) {
  const element = h("div", { class: "picked", "aria-live": "polite" });
  const draw = () => {
    const marked = picks();
    fill(
      element,
      marked.length === 0
        ? h("span", { class: "quiet" }, "Trials marked in a plot or a table are marked everywhere.")
        : [
            "Marked:",
            marked.map((number) => h("span", {}, trialLink(base, number), " ", h("button", { type: "button", "aria-label": `unmark trial ${number}`, onclick: () => pick(number, false) }, "×"))),
            marked.length > 1 ? h("a", { href: `${base}compare/?trials=${marked.join(",")}&pick=${marked.join(",")}` }, marked.length === 2 ? `compare ${marked[0]} and ${marked[1]}` : `compare these ${marked.length}`) : null,
            marked.length > 1 ? h("button", { type: "button", onclick: () => write({ pick: "" }) }, "unmark all") : null,
          ],
    );
    keepLinks();
  };
  onChange(draw);
  draw();
  return element;
}

/** All trials of a study; ``draw`` is called now and whenever there is news. */
export async function watched({ api, isLive, say, problem }, draw) {
  const trials = new Trials(api, isLive);
  await trials.update();
  await draw(trials, true);
  if (!isLive) {
    say("exported", "as it was when it was written");
    return trials;
  }
  let isBusy = false;
  let isDue = false;
  const update = async () => {
    if (isBusy) {
      isDue = true;
      return;
    }
    isBusy = true;
    try {
      do {
        isDue = false;
        const isNew = await trials.update();
        await draw(trials, isNew);
      } while (isDue);
    } catch (error) {
      problem(error);
    } finally {
      isBusy = false;
    }
  };
  follow(api, update, say);
  return trials;
}

/** Curves of some trials by their numbers. */
export async function curvesOf(api, isLive, numbers) {
  if (numbers.length === 0) return {};
  const found = await ask(isLive ? `${api}curves.json?trials=${numbers.join(",")}` : `${api}curves.json`);
  return Object.fromEntries(Object.entries(found).filter(([number]) => numbers.includes(Number(number))));
}

/** Lines of Plotly from curves. */
export function curveTraces(trials, curves, colourOf) {
  const hovers = new Map();
  return Object.entries(curves).filter(([number, one]) => one.steps.length && trials.rows[number]).map(([number, one]) => {
    const trial = trials.rows[number];
    hovers.set(number, hover(trial));
    return {
      type: "scatter",
      mode: "lines+markers",
      x: one.steps,
      y: one.scores,
      customdata: one.steps.map(() => Number(number)),
      name: `trial ${number}`,
      text: one.steps.map((step, place) => `${hovers.get(number)}<br>step ${step}: ${score(one.scores[place])}`),
      hoverinfo: "text",
      line: { color: colourOf(trial), width: 1.5 },
      marker: { color: colourOf(trial), size: trial.state === "running" ? 6 : 4, symbol: isPublished(trial) ? "diamond" : "circle" },
      showlegend: false,
      meta: "curve",
    };
  });
}

export const curveData = (curves) => ({
  columns: ["trial", "step", "score", "train_loss"],
  rows: Object.entries(curves).flatMap(([number, one]) => one.steps.map((step, place) => [Number(number), step, one.scores[place], one.losses[place]])),
});
