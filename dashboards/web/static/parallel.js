// Trials by all that they are: parallel coordinates that filter, and a slice by two parameters.

import { picks, read, write } from "./address.js";
import { colour, SEQUENCE } from "./colours.js";
import { fill, h } from "./dom.js";
import { words } from "./format.js";
import { hover, isPublished, newest } from "./parts.js";
import { plain, Plot } from "./plots.js";
import { brushed, brushes, PARAMETERS, scaleOf } from "./scales.js";

const LINES = 600;
const MAIN = PARAMETERS.filter((one) => one.isMain);
const parameterOf = (name) => PARAMETERS.find((one) => one.name === name);

let known = { text: "", found: [] };

/** The brushes of the address. */
function present() {
  const text = read("brush");
  if (text !== known.text) known = { text, found: brushes(text) };
  return known.found;
}

/** The trials that every brush keeps. */
export const brushedOf = (rows) => rows.filter((trial) => present().every((one) => one.keeps(trial)));

const brush = (name, kept) => write({ brush: brushed(read("brush"), name, kept) });

/** Parallel coordinates: a line a trial; what is dragged over on an axis is kept, here and in all that follows. */
export class Parallel {
  constructor() {
    this.plot = new Plot("Parallel coordinates", { height: 340, hint: "A line is a trial. Drag along an axis to keep what it passes there; the table and all plots follow.", onSelect: (range) => this.select(range) });
    this.plot.area.classList.add("broad");
    this.scroll = h("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Parallel coordinates, wide" });
    this.plot.area.replaceWith(this.scroll);
    this.scroll.append(this.plot.area);
    this.kept = h("div", { class: "picked", "aria-live": "polite" });
    this.element = h("section", { id: "parallel" }, this.plot.element, this.kept);
    this.scales = [];
  }

  select({ x, y }) {
    const [left, right, low, high] = [...x, ...y].map(Number);
    const name = MAIN.findIndex((_, place) => place >= Math.min(left, right) - 0.2 && place <= Math.max(left, right) + 0.2);
    const kept = name < 0 ? "=" : this.scales[name].keeps(Math.min(low, high), Math.max(low, high));
    if (kept !== "=") brush(MAIN[name].name, kept);
    else this.plot.draw(); // without the box
  }

  /** @param rows all that the other filters keep, @param keyed {keyOf, colourOf} */
  show(rows, { keyOf, colourOf }) {
    const shown = rows.slice(0, LINES);
    this.scales = MAIN.map((one) => scaleOf(shown, one));
    const [marked, kept] = [new Set(picks()), new Set(brushedOf(shown))];
    const groups = new Map([["", []]]);
    for (const trial of shown) {
      const key = marked.has(trial.number) ? `marked ${trial.number}` : kept.has(trial) ? keyOf(trial) : "";
      groups.has(key) || groups.set(key, []);
      groups.get(key).push(trial);
    }
    const traces = [...groups].filter(([, some]) => some.length).map(([key, some]) => this.lines(key, some, key === "" ? colour("faint") : key.startsWith("marked ") ? colour("mark") : colourOf(some[0])));
    const names = MAIN.map((one, place) => ({ x: place, y: 1.04, yanchor: "bottom", text: one.title.replace(", ", "<br>"), showarrow: false, font: { size: 11 } }));
    const ticks = this.scales.flatMap((scale, place) => scale.ticks.map(([y, text]) => ({ x: place, y, text: text.length > 14 ? plain(text).replace(/^(.{8,}?\+)/, "$1<br>") : plain(text), align: "left", xanchor: "left", xshift: 3, showarrow: false, font: { size: 10 }, opacity: 0.85, borderpad: 0 })));
    const axes = MAIN.map((_, place) => ({ type: "line", x0: place, x1: place, y0: -0.16, y1: 1.02, line: { width: 1.5, color: colour("quiet") }, layer: "above" }));
    const layout = {
      dragmode: "select",
      selections: [],
      margin: { l: 22, r: 70, t: 40, b: 6 },
      showlegend: false,
      shapes: axes,
      annotations: [...names, ...ticks],
      xaxis: { range: [-0.1, MAIN.length - 0.5], visible: false, fixedrange: true },
      yaxis: { range: [-0.2, 1.05], visible: false, fixedrange: true },
    };
    const data = { columns: ["trial", ...MAIN.map((one) => one.name)], rows: [...kept].map((trial) => [trial.number, ...MAIN.map((one) => one.value(trial))]) };
    this.plot.show(traces, layout, data, rows.length > LINES ? `the first ${LINES} of ${rows.length}` : "");
    this.drawKept(shown);
  }

  lines(key, some, tone) {
    const isKept = key !== "";
    const gapped = (values) => some.flatMap((trial) => [...values(trial), null]);
    const same = (value) => gapped((trial) => Array(MAIN.length).fill(value(trial)));
    return {
      type: "scatter",
      mode: "lines",
      x: gapped(() => MAIN.keys()),
      y: gapped((trial) => this.scales.map((scale) => scale.at(trial))),
      customdata: same((trial) => trial.number),
      text: isKept ? same(hover) : null,
      hoverinfo: isKept ? "text" : "skip",
      line: { color: tone, width: key.startsWith("marked ") ? 3.5 : isKept ? 1.4 : 0.7 },
      opacity: isKept ? 0.8 : 0.22,
      meta: "marked by itself",
    };
  }

  /** The brushes in words, each to be taken away; and one to be added with the keyboard. */
  drawKept(rows) {
    const axis = h("select", { name: "axis", "aria-label": "Axis to filter by" }, h("option", { value: "" }, "filter by …"), MAIN.map((one) => h("option", { value: one.name }, one.title)));
    const ends = h("span", { class: "picked" });
    axis.addEventListener("change", () => fill(ends, axis.value ? fields(parameterOf(axis.value), rows) : null));
    const found = present();
    const chips = found.map((one) => h("span", {}, `${one.parameter.title}: ${one.said} `, h("button", { type: "button", "aria-label": `any ${one.parameter.title}`, onclick: () => brush(one.parameter.name, "") }, "×")));
    const key = JSON.stringify([found.map((one) => one.text)]);
    if (this.key === key) return;
    this.key = key;
    fill(this.kept, found.length ? "Kept:" : null, chips, found.length > 1 ? h("button", { type: "button", onclick: () => write({ brush: "" }) }, "all") : null, axis, ends);
  }
}

/** Fields for the values of a parameter that are kept. */
function fields(parameter, rows) {
  if (!parameter.isNumber) {
    const names = [...new Set(rows.map((trial) => parameter.value(trial) ?? "none"))].sort();
    const choice = h("select", { name: "kept", "aria-label": `${parameter.title} to keep` }, h("option", { value: "" }, "choose"), names.map((name) => h("option", { value: name }, (parameter.words ?? words)(name))));
    choice.addEventListener("change", () => brush(parameter.name, choice.value && `=${choice.value}`));
    return [choice];
  }
  const [low, high] = ["from", "to"].map((name) => h("input", { type: "number", step: "any", name, "aria-label": `${parameter.title} ${name}`, placeholder: name }));
  return [low, high, h("button", { type: "button", onclick: () => brush(parameter.name, low.value || high.value ? `${low.value}~${high.value}` : "") }, "keep")];
}

const KINDS = [{ name: "score", title: "score" }, { name: "rank", title: "rank of the score" }, { name: "contour", title: "score with contours" }];
const CONTOURED = 200;

/** Points by two parameters that are chosen, in the colour of their score or its rank, if wanted over contours between them. */
export class Slice {
  constructor() {
    const select = (name, title, otherwise, options = PARAMETERS) => {
      const field = h("select", { name, onchange: () => write({ [name]: field.value === otherwise ? "" : field.value }) }, options.map((one) => h("option", { value: one.name }, one.title)));
      field.value = read(name, otherwise);
      return h("label", {}, title, field);
    };
    this.plot = new Plot("Score by two parameters", { height: 380, hint: "Yellow: highest score, blue: lowest. Points of the same category are spread sideways." });
    this.element = h("section", { class: "slice" }, h("div", { class: "filters" }, select("x", "Across", "attention_learning_rate"), select("y", "Upwards", "ffn_learning_rate"), select("by", "Colour", "score", KINDS)), this.plot.element);
  }

  show(rows) {
    const measured = rows.filter((one) => newest(one) !== null);
    const [x, y] = [read("x", "attention_learning_rate"), read("y", "ffn_learning_rate")].map((name) => parameterOf(name) ?? PARAMETERS[0]);
    const [across, upwards] = [x, y].map((one) => scaleOf(measured, one));
    const axis = (one, { ticks }) => ({ title: one.title, tickvals: ticks.map(([place]) => place), ticktext: ticks.map(([, text]) => plain(text)), range: [ticks[0]?.[0] < 0 ? -0.22 : -0.08, 1.08], zeroline: false });
    const by = read("by", "score");
    const sorted = measured.map(newest).sort((one, other) => one - other);
    const scores = measured.map(by === "rank" ? (one) => (measured.length > 1 ? sorted.indexOf(newest(one)) / (sorted.length - 1) : 1) : newest);
    const colorscale = SEQUENCE.map((tone, place) => [place / (SEQUENCE.length - 1), tone]);
    const placed = measured.filter((one) => one.state === "complete" && across.at(one) >= 0 && upwards.at(one) >= 0).slice(0, CONTOURED);
    const contour = { type: "contour", x: placed.map(across.at), y: placed.map(upwards.at), z: placed.map(newest), connectgaps: true, colorscale, showscale: false, opacity: 0.5, hoverinfo: "skip", line: { smoothing: 1.3, width: 0.5 } };
    const trace = {
      type: "scatter",
      mode: "markers",
      x: measured.map(across.at),
      y: measured.map(upwards.at),
      customdata: measured.map((one) => one.number),
      text: measured.map(hover),
      hoverinfo: "text",
      marker: { color: scores, colorscale, showscale: true, colorbar: { thickness: 12, title: { text: by === "rank" ? "rank" : "score" }, tickformat: by === "rank" ? ".0%" : "", outlinewidth: 0 }, size: 10, line: { width: 1, color: colour("line") }, opacity: measured.map((one) => (one.state === "complete" ? 1 : 0.55)), symbol: measured.map((one) => (isPublished(one) ? "diamond" : "circle")) },
    };
    const data = { columns: ["trial", x.name, y.name, "score", "state"], rows: measured.map((one) => [one.number, x.value(one), y.value(one), newest(one), one.state]) };
    this.plot.show(by === "contour" && placed.length > 3 ? [contour, trace] : [trace], { xaxis: axis(x, across), yaxis: axis(y, upwards), showlegend: false, legend: undefined }, data);
  }
}
