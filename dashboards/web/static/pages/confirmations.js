import { onChange } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { Plot } from "../plots.js";
import { frameTable, watched } from "../parts.js";

export async function show(page) {
  const draw = comparisons(page, page.place);
  await watched(page, draw);
  onChange(() => draw().catch(page.problem));
}

/** A function that fills a place with the confirmations of a study, or with the one that the study is. */
export function comparisons({ base, api }, place) {
  const plots = new Map();
  let known = "";
  return async () => {
    const found = await ask(`${api}confirmations.json`);
    const text = JSON.stringify(found);
    if (text === known) return;
    known = text;
    if (found.problem) throw new Error(found.problem);
    if (found.pending) fill(place, h("p", { class: "quiet" }, "being computed …"));
    else if (found.confirmations.length === 0) fill(place, h("p", {}, "No confirmation yet. ", h("code", {}, "deltaspace confirm"), " trains the winners with fresh seeds and measures them on the test split."));
    else fill(place, found.confirmations.map((one) => section(one, base, plots)));
  };
}

function section({ name, standing, sentences, notes, figure, scores, tables }, base, plots) {
  return h(
    "section",
    {},
    h("h2", {}, told(name)),
    h("p", { class: "quiet" }, standing),
    sentences.map((sentence) => h("p", { class: "verdict" }, told(sentence))),
    plotOf(figure, name, scores, plots),
    tables.map((one, place) => frameTable(`${name}-${place}`, one.title, one, base).element),
    notes.map((note) => h("p", { class: "quiet" }, told(note))),
  );
}

/** The figure of a confirmation, the same plot at every reading; null before there is a score. */
function plotOf(figure, name, data, plots) {
  if (figure === null) return null;
  const { height } = figure.layout;
  const key = `${name} ${height}`;
  plots.has(key) || plots.set(key, new Plot(figure.title, { height, hint: figure.says }));
  return plots.get(key).show(figure.data, { ...figure.layout, legend: { orientation: "h", y: -84 / height, x: 0 } }, data);
}
