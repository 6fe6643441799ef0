import { onChange, picks, read, write } from "../address.js";
import { colour, formColour, SEQUENCE, stateColour } from "../colours.js";
import { fill, h } from "../dom.js";
import { count, rate, words } from "../format.js";
import { plain, Plot } from "../plots.js";
import { brushedOf, Parallel, Slice } from "../parallel.js";
import { curveData, curvesOf, curveTraces, hover, isPublished, newest, pickedBar, trialColumns, watched } from "../parts.js";
import { remarkOn } from "../remarks.js";
import { distribution, frontLine, frontOf, PARAMETERS, SHARE_AXIS, sizeScale } from "../scales.js";
import { Table } from "../table.js";
import { rungLines } from "./live.js";

const POINTS = 1500;
const CURVES = 40;
const COLOURS = { ffn_form: "form at FFN", attention_form: "form at attention", state: "state", score: "score" };

export async function show(page) {
  const { place, base, api, isLive, problem } = page;
  const filters = h("form", { class: "filters", "aria-label": "Filters of the table and of all plots" });
  filters.addEventListener("submit", (event) => event.preventDefault());
  const said = h("p", { class: "quiet", role: "status" });
  const verdict = h("p", { class: "verdict" });
  const plots = {
    size: new Plot("Score by parameters", { logs: "y", hint: "Line: Pareto front. Trials without stored parameters are left out." }),
    share: new Plot("Score by share at attention", { logs: "y" }),
    attentionRate: new Plot("Score by rate at attention", { logs: "y" }),
    ffnRate: new Plot("Score by rate at the FFN", { logs: "y" }),
    attentionForm: new Plot("Score by form at attention"),
    ffnForm: new Plot("Score by form at the FFN"),
    curves: new Plot("Curves of the best", { logs: "xy", hint: `At most ${CURVES} trials, and the marked ones.` }),
    scores: new Plot("Distribution of scores (EDF)", { logs: "x", hint: "Complete trials. A line further right scores more." }),
  };
  const parallel = new Parallel();
  const slice = new Slice();
  let table = null;
  const legend = h("div", { class: "legend" });
  fill(place, verdict, filters, said, parallel.element, legend, pickedBar(base), h("p", {}, h("a", { href: "#plots" }, "to the other plots of these trials")), h("div", { id: "board", class: "board" }), h("div", { id: "plots", class: "grid view" }, [slice, ...Object.values(plots)].map((plot) => plot.element)));

  const redraw = async (trials) => {
    if (!table) {
      const all = trialColumns(trials, base);
      table = new Table([all.place, all.number, all.state, all.score, all.estimate, all.method, all.description, all.attentionForm, all.ffnForm, all.parameters, all.share, all.attentionRate, all.ffnRate, all.tags, all.note, all.reason, ...moreColumns()], { caption: "Trials, best first", name: "board", number: (one) => one.number, hasTools: true });
      document.getElementById("board").append(table.element);
    }
    drawFilters(filters, trials, () => table && (table.shown = 100));
    const filtered = ordered(trials).filter((one) => passes(one, trials));
    const rows = brushedOf(filtered);
    sortScores(rows);
    parallel.show(filtered, { keyOf, colourOf });
    slice.show(rows);
    fill(said, `${count(rows.length)} of ${count(trials.rows.length)} trials`);
    const lines = trials.ranking?.verdict ?? [];
    verdict.hidden = !lines.length;
    fill(verdict, lines.map((line) => [line, h("br")]));
    table.show(rows);
    drawPlots(plots, trials, rows);
    drawLegend(legend, rows);
    const numbers = [...new Set([...rows.slice(0, CURVES).map((one) => one.number), ...picks()])];
    const curves = await curvesOf(api, isLive, numbers);
    plots.curves.show(curveTraces(trials, curves, colourOf), { xaxis: { title: "step" }, yaxis: { title: trials.study.metric }, shapes: rungLines(trials.study.rungs) }, curveData(curves));
  };
  const trials = await watched(page, redraw);
  onChange(() => redraw(trials).catch(problem));
}

/** Ranked trials first, best first; then those that are not, by number. */
function ordered(trials) {
  const ranked = (trials.ranking?.order ?? []).map((number) => trials.rows[number]);
  return [...ranked, ...trials.rows.filter((one) => !trials.places.has(one.number))];
}

const formOf = (form) => form ?? "none";

function passes(trial, trials) {
  const text = read("text").toLowerCase();
  const [least, most] = ["least", "most"].map((name) => (read(name) === "" ? null : Number(read(name))));
  const origin = trial.replicate_of !== null ? "replicate" : trial.method === null ? "discovered" : "published";
  return (
    (!read("state") || trial.state === read("state")) &&
    (!read("origin") || origin === read("origin")) &&
    (!read("attention") || formOf(trial.attention_form) === read("attention")) &&
    (!read("ffn") || formOf(trial.ffn_form) === read("ffn")) &&
    (!text || `${trial.number} ${trial.method ?? "discovered"} ${trial.description} ${remarkOn(trials, trial.number).tags.join(" ")} ${remarkOn(trials, trial.number).note}`.toLowerCase().includes(text)) &&
    (least === null || (newest(trial) !== null && newest(trial) >= least)) &&
    (most === null || trial.stored_parameters <= most)
  );
}

function drawFilters(form, trials, begin) {
  const choices = (name) => [...new Set(trials.rows.map((one) => formOf(one[name])))].sort();
  const wanted = JSON.stringify([choices("attention_form"), choices("ffn_form")]);
  if (form.dataset.choices === wanted) {
    for (const field of form.elements) if (field.name && field !== document.activeElement && field.value !== read(field.name, field.dataset.otherwise ?? "")) field.value = read(field.name, field.dataset.otherwise ?? "");
    return;
  }
  form.dataset.choices = wanted;
  const set = (event) => {
    begin();
    write({ [event.target.name]: event.target.value === (event.target.dataset.otherwise ?? "") ? "" : event.target.value });
  };
  const select = (name, title, options, otherwise = "") => {
    const field = h("select", { name, onchange: set, "data-otherwise": otherwise }, options.map(([value, text]) => h("option", { value }, text)));
    field.value = read(name, otherwise);
    return h("label", {}, title, field);
  };
  const input = (name, title, type, more = {}) => {
    const field = h("input", { name, type, oninput: set, ...more });
    field.value = read(name);
    return h("label", {}, title, field);
  };
  const all = (texts) => [["", "all"], ...texts.map((text) => [text, text.replaceAll("_", " ")])];
  fill(
    form,
    input("text", "Text", "search", { placeholder: "words, tag, number" }),
    select("state", "State", all(["complete", "pruned", "failed", "running", "queued"])),
    select("origin", "Origin", all(["discovered", "published", "replicate"])),
    select("attention", "Form at attention", all(choices("attention_form"))),
    select("ffn", "Form at FFN", all(choices("ffn_form"))),
    input("least", "Score at least", "number", { step: "any" }),
    input("most", "Parameters at most", "number", { min: 0 }),
    select("colour", "Colour by", Object.entries(COLOURS), "ffn_form"),
    h("button", { type: "button", onclick: () => { write(Object.fromEntries(["text", "state", "origin", "attention", "ffn", "least", "most", "colour", "brush"].map((name) => [name, ""]))); form.dataset.choices = ""; drawFilters(form, trials, begin); } }, "Clear"),
  );
}

let scores = [];
const sortScores = (rows) => (scores = rows.map(newest).filter((one) => one !== null).sort((one, other) => one - other));

/** By how many fifths of the scores that are shown a trial is above the lowest. */
function fifthOf(trial) {
  const place = scores.findIndex((one) => one >= newest(trial));
  return Math.min(4, Math.floor((5 * (place < 0 ? scores.length : place)) / Math.max(1, scores.length)));
}

const colouredBy = () => (read("colour") in COLOURS ? read("colour") : "ffn_form");

function keyOf(trial) {
  if (colouredBy() === "state") return trial.state;
  if (colouredBy() !== "score") return formOf(trial[colouredBy()]);
  return newest(trial) === null ? "no score" : `${["1 lowest", "2", "3", "4", "5 highest"][fifthOf(trial)]} fifth`;
}

function colourOf(trial) {
  if (colouredBy() === "state") return stateColour(trial.state);
  if (colouredBy() !== "score") return formColour(keyOf(trial));
  return newest(trial) === null ? colour("faint") : SEQUENCE[fifthOf(trial)];
}

/** Columns that are there to be chosen: every dimension that the table does not show at first. */
function moreColumns() {
  const more = PARAMETERS.filter((one) => /_(write|insertion|gate|heads|activation|bottleneck)$/.test(one.name));
  return more.map((one) => ({ ...one, isHidden: true, full: one.title, title: one.title.replace(", ", " "), cell: (trial) => (one.isNumber ? count(one.value(trial)) : (one.words ?? words)(one.value(trial) ?? "–")), kind: "tight" }));
}

/** What colours and signs say, once for all plots. */
function drawLegend(place, rows) {
  const found = new Map(rows.filter((one) => newest(one) !== null).map((one) => [keyOf(one), colourOf(one)]));
  const entry = ([key, tone]) => {
    const dot = h("span", { class: "swatch", "aria-hidden": "true" });
    dot.style.background = tone;
    return h("span", {}, dot, key.replaceAll("_", " "));
  };
  fill(place, [...found].sort().map(entry), h("span", {}, "◆ published"), h("span", {}, "● discovered"), h("span", {}, "faint: not complete"));
}

/** Points of trials, one trace per colour, so that the legend says what is what. */
function points(rows, x, y) {
  const groups = new Map();
  for (const trial of rows) {
    if (x(trial) === null || y(trial) === null) continue;
    const key = keyOf(trial);
    groups.has(key) || groups.set(key, []);
    groups.get(key).push(trial);
  }
  return [...groups].sort().map(([key, some]) => ({
    type: "scatter",
    mode: "markers",
    name: key.replaceAll("_", " "),
    x: some.map(x),
    y: some.map(y),
    customdata: some.map((one) => one.number),
    text: some.map(hover),
    hoverinfo: "text",
    marker: {
      color: colourOf(some[0]),
      size: 7,
      opacity: some.map((one) => (one.state === "complete" ? 0.9 : 0.4)),
      symbol: some.map((one) => (one.method === null ? "circle" : "diamond")),
    },
  }));
}

function drawPlots(plots, trials, rows) {
  const measured = rows.filter((one) => newest(one) !== null);
  const step = Math.ceil(measured.length / POINTS);
  const marked = new Set(picks());
  const some = step > 1 ? measured.filter((one, place) => place < 300 || place % step === 0 || marked.has(one.number)) : measured;
  const note = some.length < measured.length ? `${count(some.length)} of ${count(measured.length)} points` : "";
  const yaxis = { title: trials.study.metric };
  const show = (plot, x, name, axis, { at = x, more = [] } = {}) =>
    plot.show([...points(some, at, newest), ...more], { xaxis: { title: name, ...axis }, yaxis, showlegend: false }, { columns: ["trial", name, "score", "state", "method", "attention_form", "ffn_form"], rows: measured.map((one) => [one.number, x(one), newest(one), one.state, one.method, one.attention_form, one.ffn_form]) }, note);
  const size = sizeScale(measured);
  show(plots.size, (one) => one.stored_parameters, "stored parameters", size.axis, { at: size.at, more: [frontLine(frontOf(measured.filter((one) => one.stored_parameters > 0), (one) => one.stored_parameters, newest), size.at, newest)] });
  show(plots.share, (one) => one.attention_share, "share at attention", { range: [-0.04, 1.04] });
  show(plots.attentionRate, (one) => one.attention_learning_rate, "learning rate at attention", rateAxis(measured, "attention_learning_rate"));
  show(plots.ffnRate, (one) => one.ffn_learning_rate, "learning rate at the FFN", rateAxis(measured, "ffn_learning_rate"));
  const form = (name) => (one) => plain(formOf(one[name])).replaceAll("_", "<br>").replaceAll("+", "<br>+ ");
  const category = { type: "category", categoryorder: "category ascending", tickangle: 0, tickfont: { size: 10.5 } };
  show(plots.attentionForm, form("attention_form"), "form at attention", category);
  show(plots.ffnForm, form("ffn_form"), "form at the FFN", category);
  const complete = rows.filter((one) => one.state === "complete" && one.replicate_of === null);
  const origins = { discovered: complete.filter((one) => !isPublished(one)), published: complete.filter(isPublished) };
  const lines = Object.entries(origins).filter(([, own]) => own.length).map(([name, own]) => distribution(name, own.map((one) => one.score), { line: { color: colour(name === "published" ? "warn" : "accent") } }));
  plots.scores.show(lines, { xaxis: yaxis, yaxis: SHARE_AXIS, showlegend: true }, { columns: ["trial", "score", "method"], rows: complete.map((one) => [one.number, one.score, one.method]) });
}

/** A logarithmic axis with four rates on it, also where all rates lie between two powers of ten. */
function rateAxis(rows, name) {
  const logs = rows.map((one) => one[name]).filter((value) => value > 0).map(Math.log10);
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  const tickvals = logs.length ? [...new Set([0, 1, 2, 3].map((place) => 10 ** (least + (place * (most - least)) / 3)))] : [];
  return { type: "log", tickvals, ticktext: tickvals.map(rate) };
}

