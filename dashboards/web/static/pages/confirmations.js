import { onChange } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, rate, score } from "../format.js";
import { Plot } from "../plots.js";
import { trialLink, watched } from "../parts.js";
import { Table } from "../table.js";

export async function show(page) {
  const { place, base, api, problem } = page;
  const plots = new Map();
  let known = "";
  const draw = async () => {
    const found = await ask(`${api}confirmations.json`);
    const text = JSON.stringify(found);
    if (text === known) return;
    known = text;
    if (found.problem) throw new Error(found.problem);
    if (found.pending) fill(place, h("p", { class: "quiet" }, "being worked out …"));
    else if (found.confirmations.length === 0) fill(place, h("p", {}, "This study was not confirmed yet. ", h("code", {}, "deltaspace confirm"), " trains its winners afresh and measures them on the test split."));
    else fill(place, found.confirmations.map((one) => section(one, base, plots)));
  };
  await watched(page, draw);
  onChange(() => draw().catch(problem));
}

function section({ result, sentences, notes, figure }, base, plots) {
  const columns = [
    { name: "label", title: "Configuration", value: (one) => one.label, cell: (one) => h("span", { class: one.is_top ? "found" : "" }, told(one.label)) },
    { name: "trial", title: "Trial", isNumber: true, value: (one) => one.trial, cell: (one) => (one.trial === null ? "–" : trialLink(base, one.trial)) },
    { name: "test", title: "Test, mean", isNumber: true, value: (one) => one.spread?.mean, cell: (one) => score(one.spread?.mean) },
    { name: "deviation", title: "deviation", isNumber: true, value: (one) => one.spread?.deviation, cell: (one) => score(one.spread?.deviation) },
    { name: "seeds", title: "Seeds", isNumber: true, value: (one) => one.scores.length, cell: (one) => `${one.scores.filter((value) => value !== null).length} / ${one.scores.length}` },
    { name: "validation", title: "Validation", isNumber: true, value: (one) => one.validation_score, cell: (one) => score(one.validation_score) },
    { name: "optimism", title: "Optimism", isNumber: true, value: (one) => one.optimism, cell: (one) => score(one.optimism) },
    { name: "parameters", title: "Parameters", isNumber: true, value: (one) => one.stored_parameters, cell: (one) => count(one.stored_parameters) },
    { name: "rates", title: "Learning rates", isNumber: true, value: (one) => one.ffn_learning_rate, cell: (one) => `${rate(one.attention_learning_rate)}, ${rate(one.ffn_learning_rate)}` },
    { name: "description", title: "What it is", value: (one) => one.description, cell: (one) => told(one.description), kind: "words" },
  ];
  const compared = [
    { name: "baseline", title: "Against", value: (one) => one.baseline, cell: (one) => told(one.baseline) },
    { name: "verdict", title: "The winner", value: (one) => one.verdict, cell: (one) => one.verdict },
    { name: "difference", title: "By", isNumber: true, value: (one) => one.difference, cell: (one) => score(one.difference) },
    { name: "interval", title: "95% interval", isNumber: true, value: (one) => one.low, cell: (one) => `${score(one.low)} to ${score(one.high)}` },
    { name: "pairs", title: "Seeds", isNumber: true, value: (one) => one.pairs, cell: (one) => one.pairs },
    { name: "p", title: "p (Holm)", isNumber: true, value: (one) => one.adjusted_p, cell: (one) => (one.adjusted_p === null ? "–" : one.adjusted_p.toPrecision(2)) },
  ];
  const elsewhere = [
    { name: "metric", title: "Measured by lm-eval", value: (one) => one.metric, cell: (one) => told(one.metric) },
    { name: "label", title: "Configuration", value: (one) => one.label, cell: (one) => told(one.label) },
    { name: "mean", title: "Mean", isNumber: true, value: (one) => one.mean, cell: (one) => score(one.mean) },
    { name: "deviation", title: "deviation", isNumber: true, value: (one) => one.deviation, cell: (one) => score(one.deviation) },
  ];
  const figures = result.contenders.flatMap((one) => Object.entries(one.elsewhere).map(([metric, found]) => ({ metric, label: one.label, ...found })));
  return h(
    "section",
    {},
    h("h2", {}, told(result.name)),
    h("p", { class: "quiet" }, `${result.ended} of ${result.trials} trainings have ended; ${result.seeds.length} seeds each, ${result.metric} on the test split`),
    sentences.map((sentence) => h("p", { class: "verdict" }, told(sentence))),
    h("div", { class: "grid two" }, scoresOf(figure, result, plots), result.comparisons.length ? new Table(compared, { caption: "The winner beside every baseline", name: `against-${result.name}` }).show(result.comparisons) : null),
    new Table(columns, { caption: "Configurations", name: `contenders-${result.name}` }).show(result.contenders),
    figures.length ? new Table(elsewhere, { caption: "Other tasks", name: `elsewhere-${result.name}` }).show(figures) : null,
    notes.map((note) => h("p", { class: "quiet" }, told(note))),
  );
}

/** Of the figure of a confirmation, the same plot at every reading; null before there is a score. */
function scoresOf(figure, result, plots) {
  if (figure === null) return null;
  const { height } = figure.layout;
  const key = `${result.name} ${height}`;
  plots.has(key) || plots.set(key, new Plot(figure.title, { height, hint: figure.says }));
  const rows = result.contenders.flatMap((one) => one.scores.map((value, place) => [one.label, result.seeds[place], value]));
  const legend = { orientation: "h", y: -84 / height, x: 0 };
  return plots.get(key).show(figure.data, { ...figure.layout, legend }, { columns: ["configuration", "seed", "score"], rows: rows.filter(([, , value]) => value !== null) });
}
