import { onChange, picks, read, write } from "../address.js";
import { PALETTE } from "../colours.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, estimate, percent } from "../format.js";
import { formulas, picture } from "../picture.js";
import { Plot } from "../plots.js";
import { curveData, curvesOf, curveTraces, scoreText, trialLink, watched } from "../parts.js";
import { remarkOn, tagList } from "../remarks.js";
import { dimensions, DIMENSIONS } from "./trial.js";
import { rungLines } from "./live.js";

export async function show(page) {
  const { place, base, api, isLive, problem } = page;
  const form = h("form", { class: "picked", "aria-label": "Which trials" });
  const body = h("div");
  const plot = new Plot("Curves of the trials", { height: 300 });
  fill(place, form, body);
  let shown = "";
  const draw = async (trials) => {
    const numbers = chosen(trials);
    fields(form, trials, numbers);
    const unknown = numbers.find((number) => !trials.rows[number]);
    if (unknown !== undefined || numbers.length < 2) {
      shown = "";
      const range = `the study has trials 0 to ${trials.rows.length - 1}`;
      fill(body, h("p", {}, unknown === undefined ? `Choose two trials; ${range}.` : `No trial ${unknown}; ${range}. Choose another.`));
      return;
    }
    const key = JSON.stringify([numbers.map((number) => [trials.rows[number], remarkOn(trials, number)]), trials.ranked]);
    if (key === shown) return;
    shown = key;
    const all = await Promise.all(numbers.map((number) => ask(`${api}trials/${number}.json`)));
    const [first, ...others] = numbers;
    const differences = isLive ? await Promise.all(others.map((number) => ask(`${api}differences/${first}-${number}.json`))) : [];
    const curves = await curvesOf(api, isLive, numbers);
    fill(body, ...content(all, trials, base, differences.map((one) => one.evidence)), h("h2", {}, "Curves"), plot.element);
    const toneOf = (number) => PALETTE[numbers.indexOf(number) % PALETTE.length];
    const traces = curveTraces(trials, curves, (trial) => toneOf(trial.number));
    for (const trace of traces) Object.assign(trace, { showlegend: true, line: { ...trace.line, dash: ["solid", "dash", "dot", "dashdot"][numbers.indexOf(trace.customdata[0]) % 4], width: 2.5 }, meta: "line" });
    plot.show(traces, { xaxis: { title: "step" }, yaxis: { title: trials.study.metric }, shapes: rungLines(trials.study.rungs) }, curveData(curves));
  };
  const trials = await watched(page, draw);
  onChange(() => draw(trials).catch(problem));
}

/** Those of the address, else those that are marked, else the best discovery and the best published method. */
function chosen(trials) {
  const given = [...new Set(read("trials").split(",").filter((text) => /^\d{1,15}$/.test(text)).map(Number))];
  if (given.length) return given;
  const marked = picks().filter((number) => trials.rows[number]);
  if (marked.length > 1) return marked;
  const ranked = (trials.ranking?.order ?? trials.rows.map((one) => one.number)).map((number) => trials.rows[number]);
  const found = [ranked.find((one) => one.method === null) ?? ranked[0], ranked.find((one) => one.method !== null) ?? ranked[1]];
  return found.filter(Boolean).map((one) => one.number);
}

/** What is compared: the first with all others. Each can be left out or be put first, and others be added. */
function fields(form, trials, numbers) {
  const key = `${numbers}/${picks()}`;
  if (form.dataset.key === key) return;
  form.dataset.key = key;
  const compare = (some) => write({ trials: [...new Set(some)].join(",") }, { isNew: true });
  const input = h("input", { type: "number", name: "added", min: 0, "aria-label": "Trial to add", placeholder: "number" });
  const marked = picks().filter((number) => !numbers.includes(number));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (input.value !== "") compare([...numbers, Number(input.value)]);
  };
  fill(
    form,
    numbers.map((number, place) => h("span", { class: "chip" }, `trial ${number} `, place ? h("button", { type: "button", "aria-label": `put trial ${number} first`, onclick: () => compare([number, ...numbers]) }, "first") : null, numbers.length > 2 || !trials.rows[number] ? h("button", { type: "button", "aria-label": `leave trial ${number} out`, onclick: () => compare(numbers.filter((one) => one !== number)) }, "×") : null)),
    input,
    h("button", { type: "submit" }, "Add"),
    marked.length ? h("button", { type: "button", onclick: () => compare([...numbers, ...marked]) }, `Add the marked: ${marked.join(", ")}`) : null,
  );
}

function content(all, trials, base, differences) {
  const { study } = trials;
  const known = (found) => trials.estimates.get(found.number);
  const row = (title, value, compared = null) => {
    const values = all.map(value);
    return h("tr", { class: compared && differ(all.map(compared)) ? "differs" : "" }, h("th", { scope: "row" }, title), values.map((one) => h("td", {}, one)));
  };
  const [first, ...others] = all;
  const said = others.flatMap(({ number }, place) => (differences[place] ? [difference(first.number, number, differences[place])] : []));
  return [
    said.length ? h("p", { class: "verdict" }, said.map((one) => [one, h("br")]), "These are single trainings; the estimates below predict the score of another training.") : null,
    h(
      "div",
      { class: "table" },
      h(
        "div",
        { class: "frame", tabindex: 0, role: "region", "aria-label": "the trials" },
        h(
          "table",
          {},
          h("caption", {}, "Marked rows differ (numbers by 10%)"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "hidden" }, "Property")), all.map((found) => h("th", { scope: "col" }, "Trial ", trialLink(base, found.number))))),
          h(
            "tbody",
            {},
            row("configuration", (found) => told(found.trial.description)),
            row("origin", (found) => told(found.trial.method ?? "discovered")),
            row("state", (found) => found.trial.state, (found) => found.trial.state),
            row("score", (found) => scoreText(trials.rows[found.number] ?? found.trial)),
            row("estimate", (found) => (known(found) ? estimate(known(found).mean, known(found).reach) : "–")),
            row("parameters", (found) => `${count(found.trial.stored_parameters)} (${percent(found.trial.stored_parameters / study.budget_parameters)} of the budget)`, (found) => found.trial.stored_parameters),
            row("share at attention", (found) => percent(found.trial.attention_share), (found) => found.trial.attention_share),
            row("seed", (found) => String(found.trial.seed)),
            all.some((found) => remarkOn(trials, found.number).tags.length) ? row("tags", (found) => h("span", {}, tagList(remarkOn(trials, found.number).tags))) : null,
            all.some((found) => remarkOn(trials, found.number).note) ? row("note", (found) => told(remarkOn(trials, found.number).note)) : null,
          ),
        ),
      ),
    ),
    ["attention", "ffn"].map((side) => {
      const sides = all.map((found) => found.trial[side]);
      const edited = sides.filter(Boolean);
      const isDifferent = (name) => differ((name === "form" ? sides : edited).map((one) => one?.[name] ?? null));
      const differing = Object.keys(DIMENSIONS).filter(isDifferent).length;
      const where = `At ${side === "ffn" ? "the FFN" : "attention"}`;
      return [h("h2", {}, `${where}: ${differing === 0 ? "the same" : `${differing} differ`}`), dimensions(all.map((found, place) => [`trial ${found.number}`, sides[place]]), isDifferent, where)];
    }),
    h("h2", {}, "In a block"),
    h("div", { class: "sides" }, all.map((found) => h("section", {}, h("h3", {}, `Trial ${found.number}`), found.picture ? [picture(found.picture), formulas(found.picture)] : told(found.problem)))),
  ];
}

/** Whether values differ; numbers by more than a tenth, since rates and sizes of two trials are hardly ever equal. */
function differ(values) {
  if (values.every((one) => typeof one === "number")) return Math.max(...values) > 1.1 * Math.min(...values);
  return new Set(values).size > 1;
}

const difference = (first, other, { examples, mean, standard_error: error }) => `On the same ${count(examples)} validation examples trial ${first} scored ${Math.abs(mean).toFixed(4)} ± ${(1.96 * (error ?? 0)).toFixed(4)} ${mean >= 0 ? "higher" : "lower"} than trial ${other} (95%).`;
