import { onChange, pick, picks, read } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { bytes, count, duration, estimate, moment, percent, rate, score, tensors, words } from "../format.js";
import { formulas, picture } from "../picture.js";
import { Plot } from "../plots.js";
import { curveTraces, formTag, newest, trialLink, watched } from "../parts.js";
import { formColour } from "../colours.js";
import { Remarks, remarkOn, stopButton } from "../remarks.js";
import { facts, Table } from "../table.js";
import { rungLines } from "./live.js";

export const DIMENSIONS = { form: "functional form", write: "modified representation", insertion: "insertion form", gate: "composition function", heads: "heads", bottleneck: "bottleneck", activation: "activation", scale: "scale", learning_rate: "learning rate" };

export async function show(page) {
  const { place, base, api, isLive } = page;
  const curve = new Plot("Score by step", { height: 260 });
  const loss = new Plot("Loss in training by step", { height: 260 });
  const remarks = new Remarks(page);
  let shown = "";
  const draw = async (trials) => {
    const number = read("number") || String(trials.best?.number ?? 0);
    const row = trials.rows[Number(number)];
    const key = `${number}/${row?.state}/${row?.steps}/${trials.ranked}/${picks()}/${JSON.stringify(remarkOn(trials, Number(number)))}`;
    if (key === shown) return;
    const found = await ask(`${api}trials/${encodeURIComponent(number)}.json`);
    shown = key;
    fill(place, ...content(found, trials, page, { curve, loss, remarks }));
    document.querySelector("h1").textContent = `Trial ${found.number}`;
  };
  const trials = await watched(page, draw);
  onChange(() => draw(trials));
}

function content(found, trials, page, { curve, loss, remarks }) {
  const { base } = page;
  const { trial } = found;
  const known = trials.estimates.get(found.number);
  const { study } = trials;
  const marked = picks().includes(found.number);
  const last = trials.rows.length - 1;
  const row = trials.rows[found.number] ?? trial;
  const value = newest(row);
  const line = { [found.number]: { steps: found.readings.map((one) => one.step), scores: found.readings.map((one) => one.score), losses: found.readings.map((one) => one.train_loss) } };
  const traces = curveTraces(trials, line, (one) => formColour(one.ffn_form ?? one.attention_form));
  const data = { columns: ["trial", "step", "score", "train_loss"], rows: found.readings.map((one) => [found.number, one.step, one.score, one.train_loss]) };
  curve.show(traces, { xaxis: { title: "step" }, yaxis: { title: found.scored_by }, shapes: rungLines(study.rungs) }, data);
  loss.show(traces.map((trace) => ({ ...trace, y: line[found.number].losses, hoverinfo: "x+y" })), { xaxis: { title: "step" }, yaxis: { title: "training loss" } }, data);
  return [
    h("p", {}, told(trial.description)),
    /=\d+–\d/.test(trial.description) ? h("p", { class: "quiet hint" }, "A range such as r=2–3: the layers nearest to the output have the larger size.") : null,
    h(
      "p",
      { class: "picked" },
      found.number > 0 ? h("a", { href: `?number=${found.number - 1}`, "data-keep-not": "" }, "← previous") : null,
      found.number < last ? h("a", { href: `?number=${found.number + 1}` }, "next →") : null,
      h("button", { type: "button", "data-key": "mark", "aria-pressed": marked ? "true" : "false", onclick: () => pick(found.number) }, marked ? "unmark" : "mark"),
      study.confirms === null && trials.best && trials.best.number !== found.number ? h("a", { href: `${base}compare/?trials=${found.number},${trials.best.number}` }, "compare with the best") : null,
      study.confirms === null && h("a", { href: `${base}leaderboard/?pick=${found.number}` }, "show in the leaderboard"),
      trial.state === "running" ? stopButton(page, trials, found.number) : null,
    ),
    remarks.show(trials, found.number),
    h(
      "div",
      { class: "tiles" },
      tileOf("State", h("span", { class: `state-${trial.state}` }, trial.state), trial.reason ?? ""),
      tileOf(found.scored_by, value === null ? "–" : score(value), row.seeds ? `mean of ${row.seeds} trainings` : row.state === "complete" ? `after ${count(row.steps)} steps` : `at step ${count(row.steps)}`),
      tileOf("Estimate", known ? estimate(known.mean, known.reach) : "–", "if trained again, 95%"),
      tileOf("Parameters", count(trial.stored_parameters), `${percent(trial.stored_parameters / study.budget_parameters)} of the budget`),
      tileOf("Origin", told(trial.method ?? (trial.replicate_of === null ? "discovered" : "replicate")), trial.replicate_of === null ? "" : ["of trial ", trialLink(base, trial.replicate_of)]),
    ),
    h("h2", {}, "Edits in a block"),
    h("p", { class: "quiet hint" }, "Dashed: input of an edit. Solid: output. Rings: changed tensors."),
    found.picture ? [picture(found.picture), formulas(found.picture)] : h("p", { class: "problem" }, told(found.problem)),
    h("h2", {}, "The four dimensions"),
    dimensions([["attention", trial.attention], ["FFN", trial.ffn]]),
    h("h2", {}, "Curves"),
    h("div", { class: "grid two" }, curve.element, loss.element),
    h("h2", {}, "Measurements"),
    readings(found.readings),
    h("h2", {}, "Attempts and files"),
    h("div", { class: "grid two" }, attempts(found.attempts), files(found.files)),
    found.replicates.length ? [h("h2", {}, "Replicates with other seeds"), h("ul", { class: "plain" }, found.replicates.map((one) => h("li", {}, "trial ", trialLink(base, one.number), `: ${one.state} `, one.score === null ? "" : score(one.score))))] : null,
    found.events.length ? [h("h2", {}, "Events"), h("ul", { class: "plain" }, found.events.map((one) => h("li", {}, h("time", { datetime: one.at }, moment(one.at)), told(one.kind), ": ", told(one.text))))] : null,
    h("h2", {}, "More"),
    facts([
      ["trained parameters", count(trial.trained_parameters)],
      ["task head", count(trial.head_parameters)],
      ["share at attention", percent(trial.attention_share)],
      ["seed", String(trial.seed)],
      ["fingerprint", h("span", { class: "formula" }, trial.fingerprint)],
      ["proposed (UTC)", moment(trial.created_at)],
      ["ended (UTC)", moment(trial.ended_at)],
    ]),
    found.nearest?.length ? [h("h3", {}, "Nearest published methods"), h("ul", { class: "plain" }, found.nearest.map((one) => h("li", {}, h("strong", {}, one.title), ": ", told(one.differences.join("; ") || "only sizes differ"))))] : null,
  ];
}

const tileOf = (title, value, ...rest) => h("div", { class: "tile" }, h("span", {}, title), h("b", {}, value), h("span", {}, rest));

/** The dimensions of sides, one column each. */
export function dimensions(sides, isDifferent = () => false, caption = "dimensions") {
  const shown = (name, value) => (value === null || value === undefined ? "–" : name === "learning_rate" ? rate(value) : name === "form" ? formTag(value) : told(name === "write" ? tensors(value) : words(value)));
  return h(
    "div",
    { class: "table" },
    h(
      "div",
      { class: "frame", tabindex: 0, role: "region", "aria-label": caption },
      h(
        "table",
        {},
        h("caption", { class: "hidden" }, "The design dimensions at attention and at the FFN"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "dimension"), sides.map(([title]) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, Object.entries(DIMENSIONS).map(([name, title]) => h("tr", { class: isDifferent(name) ? "differs" : "" }, h("th", { scope: "row" }, title), sides.map(([, side]) => h("td", {}, side ? shown(name, side[name]) : "–"))))),
      ),
    ),
  );
}

function readings(rows) {
  const metrics = [...new Set(rows.flatMap((one) => Object.keys(one.metrics)))];
  const number = (name, title, value, cell) => ({ name, title, isNumber: true, value, cell: (one) => cell(value(one)) });
  return new Table(
    [
      number("step", "Step", (one) => one.step, count),
      number("rung", "Rung", (one) => one.rung, (value) => value ?? "–"),
      number("attempt", "Attempt", (one) => one.attempt, String),
      number("score", "Score", (one) => one.score, score),
      ...metrics.map((name) => number(`m-${name}`, words(name), (one) => one.metrics[name] ?? null, score)),
      number("loss", "Training loss", (one) => one.train_loss, score),
      number("seconds", "Seconds", (one) => one.seconds, (value) => value.toFixed(1)),
    ],
    { caption: "Measurements", name: "readings" },
  ).show(rows);
}

function attempts(rows) {
  return new Table(
    [
      { name: "attempt", title: "Attempt", isNumber: true, value: (one) => one.attempt, cell: (one) => one.attempt },
      { name: "worker", title: "Worker", value: (one) => one.worker, cell: (one) => told(one.worker) },
      { name: "begun", title: "Begun (UTC)", value: (one) => one.started_at, cell: (one) => moment(one.started_at), kind: "tight" },
      { name: "took", title: "Took", isNumber: true, value: (one) => one.ended_at, cell: (one) => (one.ended_at ? duration((new Date(one.ended_at) - new Date(one.started_at)) / 1000) : "–") },
      { name: "ending", title: "Ending", value: (one) => one.ending, cell: (one) => one.ending ?? "running" },
    ],
    { caption: "Attempts", name: "attempts" },
  ).show(rows);
}

function files(rows) {
  return new Table(
    [
      { name: "kind", title: "File", value: (one) => one.kind, cell: (one) => one.kind },
      { name: "step", title: "Step", isNumber: true, value: (one) => one.step, cell: (one) => count(one.step) },
      { name: "size", title: "Size", isNumber: true, value: (one) => one.size_bytes, cell: (one) => bytes(one.size_bytes) },
      { name: "path", title: "Path", value: (one) => one.path, cell: (one) => told(one.path), kind: "words" },
    ],
    { caption: "Files", name: "files" },
  ).show(rows);
}
