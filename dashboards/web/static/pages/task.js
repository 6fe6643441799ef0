import { onChange, read, write } from "../address.js";
import { PALETTE } from "../colours.js";
import { ask } from "../data.js";
import { fill, h, told, visible } from "../dom.js";
import { count, moment, percent, score } from "../format.js";
import { states } from "../parts.js";
import { plain, Plot } from "../plots.js";
import { distribution, SHARE_AXIS, sizeScale } from "../scales.js";
import { Table } from "../table.js";

export async function show({ place, root, api, problem }) {
  const form = h("form", { class: "filters", "aria-label": "Which task" });
  const said = h("p", { class: "quiet" });
  const plots = {
    course: new Plot("Best score so far", { height: 320, logs: "y", hint: "Scores on validation, by number of the trial." }),
    sizes: new Plot("Score by parameters", { height: 320, logs: "y", hint: "Complete trials; diamonds are published methods." }),
    scores: new Plot("Distribution of scores (EDF)", { height: 320, logs: "x", hint: "Complete trials. A line further right scores more." }),
  };
  const link = (row, one) => (one === null ? "–" : [h("a", { href: `${root}studies/${row.id}/trial/?number=${one.number}` }, String(one.number)), ` ${score(one.score)}`]);
  const table = new Table(
    [
      { name: "name", title: "Study", value: (row) => row.name, cell: (row) => [swatch(row), h("a", { href: `${root}studies/${row.id}/` }, told(row.name))], kind: "tight" },
      { name: "backbone", title: "Backbone", value: (row) => row.backbone, cell: (row) => told(row.backbone), kind: "tight" },
      { name: "budget", title: "Budget", isNumber: true, value: (row) => row.budget_parameters, cell: (row) => `${count(row.budget_parameters)} (${percent(row.budget_parameters / row.backbone_parameters, 2)})` },
      { name: "states", title: "Trials", value: (row) => row.rows.length, cell: (row) => states(row.counts), kind: "tight" },
      { name: "metric", title: "Metric", value: (row) => row.metric, cell: (row) => told(row.metric) },
      { name: "discovered", title: "Highest discovery", isNumber: true, value: (row) => row.discovered?.score, cell: (row) => link(row, row.discovered) },
      { name: "description", title: "Configuration", value: (row) => row.discovered?.description, cell: (row) => told(row.discovered?.description ?? "–"), kind: "words" },
      { name: "published", title: "Highest published", isNumber: true, value: (row) => row.published?.score, cell: (row) => link(row, row.published) },
      { name: "method", title: "Method", value: (row) => row.published?.method, cell: (row) => told(row.published?.method ?? "–") },
      { name: "created", title: "Begun (UTC)", isHidden: true, value: (row) => row.created_at, cell: (row) => moment(row.created_at).slice(0, 16), kind: "tight" },
    ],
    { caption: "Studies of the task", name: "task", hasTools: true },
  );
  const draw = async () => {
    let { tasks, studies } = await ask(`${api}task.json?name=${encodeURIComponent(read("name"))}`);
    if (studies.length === 0 && tasks.length && !read("name")) return write({ name: tasks[0] });
    studies = studies.map((one, at) => ({ ...one, tone: PALETTE[at % PALETTE.length] }));
    const choice = h("select", { name: "name", onchange: () => write({ name: choice.value }, { isNew: true }) }, tasks.map((name) => h("option", { value: name, selected: name === read("name") }, name)));
    fill(form, h("label", {}, "Task", choice));
    document.querySelector("h1").textContent = `Studies of ${visible(read("name"))}`;
    fill(said, studies.length ? `${studies.length} ${studies.length === 1 ? "study" : "studies"}. Highest scores are partly luck and rise with the number of trials. To compare studies, confirm their winners.` : "No study of this task. Choose another.");
    table.show(studies);
    drawPlots(plots, studies);
  };
  fill(place, form, said, table.element, h("div", { class: "grid two" }, Object.values(plots).map((plot) => plot.element)));
  await draw();
  onChange(() => draw().catch(problem));
}

function swatch({ tone }) {
  const dot = h("span", { class: "swatch", "aria-hidden": "true" });
  dot.style.background = tone;
  return dot;
}

function drawPlots(plots, studies) {
  const entries = studies.map((one) => ({ ...one, trials: one.rows.map((row) => Object.fromEntries(one.columns.map((name, place) => [name, row[place]]))) })).filter((one) => one.trials.length);
  const metrics = [...new Set(studies.map((one) => one.metric))].join(" or ");
  const course = entries.map((one) => {
    let best = -Infinity;
    const line = one.trials.flatMap((trial) => (trial.score > best ? ((best = trial.score), [[trial.number, best]]) : []));
    line.push([one.trials.at(-1).number, best]);
    return { type: "scatter", mode: "lines", name: plain(one.name), x: line.map(([x]) => x), y: line.map(([, y]) => y), line: { shape: "hv", color: one.tone, width: 2 }, hovertemplate: `${plain(one.name)}<br>trial %{x}: %{y:.4f}<extra></extra>` };
  });
  const size = sizeScale(entries.flatMap((one) => one.trials));
  const sizes = entries.map((one) => ({ type: "scatter", mode: "markers", name: plain(one.name), x: one.trials.map(size.at), y: one.trials.map((trial) => trial.score), marker: { color: one.tone, size: 7, symbol: one.trials.map((trial) => (trial.method === null ? "circle" : "diamond")) }, text: one.trials.map((trial) => plain(`${one.name}, trial ${trial.number}, ${trial.method ?? "discovered"}, ${count(trial.stored_parameters)} parameters`)), hovertemplate: "%{text}: %{y:.4f}<extra></extra>" }));
  const data = { columns: ["study", "trial", "score", "parameters", "method"], rows: entries.flatMap((one) => one.trials.map((trial) => [one.name, trial.number, trial.score, trial.stored_parameters, trial.method])) };
  plots.course.show(course, { xaxis: { title: "trial" }, yaxis: { title: metrics }, showlegend: true }, data);
  const scores = entries.map((one) => distribution(plain(one.name), one.trials.map((trial) => trial.score), { line: { color: one.tone } }));
  plots.scores.show(scores, { xaxis: { title: metrics }, yaxis: SHARE_AXIS, showlegend: true }, data);
  plots.sizes.show(sizes, { xaxis: size.axis, yaxis: { title: metrics }, showlegend: true }, data);
}
