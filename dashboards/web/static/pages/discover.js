import { onChange } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count } from "../format.js";
import { Plot } from "../plots.js";
import { frameTable, pickedBar, watched } from "../parts.js";

export async function show(page) {
  const { place, base, api, problem } = page;
  const { views } = await ask(`${api}views.json`);
  const sections = new Map(views.map(({ name, title }) => [name, section(name, title)]));
  fill(
    place,
    h("p", { class: "quiet" }, "Computed by the search's model, not from averages (the sampler prefers what looked good). All intervals are 95%."),
    pickedBar(base),
    h("nav", { "aria-label": "Views", class: "views" }, views.map(({ name, title }) => h("a", { href: `#${name}` }, title))),
    [...sections.values()].map((one) => one.element),
  );
  const draw = async (trials) => {
    for (const [view, one] of sections) {
      const key = `${trials.version}`;
      if (one.key === key && !one.isPending) continue;
      const found = await ask(`${api}views/${view}.json`);
      one.isPending = found.pending;
      if (!found.pending) one.key = key;
      drawSection(one, found, base);
    }
  };
  await watched(page, draw);
  onChange(() => sections.forEach((one) => one.table?.draw()));
  if (location.hash) document.querySelector(CSS.escape ? `#${CSS.escape(location.hash.slice(1))}` : location.hash)?.scrollIntoView();
}

function section(view, words) {
  const body = h("div", {}, h("p", { class: "quiet" }, "being computed …"));
  const title = h("h2", {}, words);
  return { view, title, body, element: h("section", { id: view, class: "view" }, title, body), text: "", plots: new Map(), isPending: true };
}

function drawSection(one, found, base) {
  const text = JSON.stringify(found);
  if (text === one.text) return;
  one.text = text;
  if (found.pending) return;
  if (found.problem) {
    fill(one.body, h("p", { class: "quiet" }, told(found.problem)));
    return;
  }
  const { question, sentences, note, columns, rows } = found.answer;
  fill(one.title, told(question));
  const said = sentences.map((sentence) => h("p", { class: "verdict" }, told(sentence)));
  if (rows.length === 0) {
    fill(one.body, said, h("p", { class: "quiet hint" }, told(note)));
    return;
  }
  one.table = frameTable(one.view, question, found.answer, base, { isMarked: true });
  const data = { columns, rows };
  const figures = found.answer.figures.map((figure) => {
    const height = figure.layout.height ?? 420;
    const known = one.plots.get(figure.name) ?? new Plot(figure.title, { height, hint: sentences.some((one) => figure.says.includes(one)) ? "" : figure.says });
    one.plots.set(figure.name, known);
    known.show(figure.data, { ...figure.layout, title: undefined, legend: { orientation: "h", y: -84 / height, x: 0, ...figure.layout.legend } }, data);
    return known.element;
  });
  fill(one.body, said, h("div", { class: "grid figures" }, figures), h("p", { class: "quiet hint" }, told(note)), h("details", { class: "board" }, h("summary", {}, `The numbers: ${count(rows.length)} rows`), one.table.element));
}
