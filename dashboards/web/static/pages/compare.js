import { onChange, picks, read, write } from "../address.js";
import { formColour } from "../colours.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, estimate, percent, score } from "../format.js";
import { formulas, picture } from "../picture.js";
import { Plot } from "../plots.js";
import { curveData, curvesOf, curveTraces, trialLink, watched } from "../parts.js";
import { dimensions, DIMENSIONS } from "./trial.js";
import { rungLines } from "./live.js";

export async function show(page) {
  const { place, base, api, isLive, problem } = page;
  const form = h("form", { class: "filters", "aria-label": "Which trials" });
  const body = h("div");
  const plot = new Plot("Both curves", { height: 300 });
  fill(place, form, body);
  let shown = "";
  const draw = async (trials) => {
    const [first, second] = chosen(trials);
    fields(form, trials, first, second);
    const unknown = [first, second].findIndex((number) => Number.isNaN(number));
    if (unknown >= 0) {
      shown = "";
      fill(body, h("p", {}, `There is no trial ${read(["first", "second"][unknown])}; the study has 0 to ${trials.rows.length - 1}. Choose another.`));
      return;
    }
    if (first === null || second === null) {
      fill(body, h("p", { class: "quiet" }, "Two trials are needed."));
      return;
    }
    const key = JSON.stringify([trials.rows[first], trials.rows[second], trials.ranked]);
    if (key === shown) return;
    shown = key;
    const two = await Promise.all([first, second].map((number) => ask(`${api}trials/${number}.json`)));
    const difference = isLive ? (await ask(`${api}differences/${first}-${second}.json`)).evidence : null;
    const curves = await curvesOf(api, isLive, [first, second]);
    fill(body, ...content(two, trials, base, difference), h("h2", {}, "Curves"), plot.element);
    const [one, other] = [first, second].map((number) => trials.rows[number]);
    const traces = curveTraces(trials, curves, (trial) => formColour(trial.ffn_form ?? trial.attention_form));
    for (const trace of traces) Object.assign(trace, { showlegend: true, line: { ...trace.line, dash: trace.customdata[0] === other.number && other !== one ? "dash" : "solid", width: 2.5 }, meta: "line" });
    plot.show(traces, { xaxis: { title: "step" }, yaxis: { title: trials.study.metric }, shapes: rungLines(trials.study.rungs) }, curveData(curves));
  };
  const trials = await watched(page, draw);
  onChange(() => draw(trials).catch(problem));
}

/** Those of the address, else those that are marked, else the best discovery and the best published method. */
function chosen(trials) {
  const given = ["first", "second"].map((name) => read(name)).map((text) => (/^\d{1,15}$/.test(text) && trials.rows[Number(text)] ? Number(text) : null));
  const ranked = (trials.ranking?.order ?? trials.rows.map((one) => one.number)).map((number) => trials.rows[number]);
  const marked = picks().filter((number) => trials.rows[number]).slice(-2);
  const found = ranked.find((one) => one.method === null) ?? ranked[0];
  const published = ranked.find((one) => one.method !== null) ?? ranked[1];
  const otherwise = marked.length === 2 ? marked : [found?.number ?? null, published?.number ?? null];
  return given.map((number, place) => number ?? (read(["first", "second"][place]) ? NaN : otherwise[place]));
}

function fields(form, trials, first, second) {
  const field = (name, title, value) => {
    const input = h("input", { type: "number", name, min: 0, max: trials.rows.length - 1, onchange: (event) => write({ [name]: event.target.value }, { isNew: true }) });
    input.value = Number.isNaN(value) ? "" : (value ?? "");
    return h("label", {}, title, input);
  };
  if (form.contains(document.activeElement) && document.activeElement.tagName === "INPUT" && form.dataset.two === `${first}/${second}`) return;
  form.dataset.two = `${first}/${second}`;
  form.onsubmit = (event) => event.preventDefault();
  fill(form, field("first", "First trial", first), field("second", "Second trial", second), h("button", { type: "button", onclick: () => write({ first: second, second: first }) }, "Swap"));
}

function content([first, second], trials, base, difference) {
  const { study } = trials;
  const row = (title, value) => {
    const [one, other] = [first, second].map(value);
    return h("tr", { class: text(one) === text(other) ? "" : "differs" }, h("th", { scope: "row" }, title), h("td", {}, one), h("td", {}, other));
  };
  const text = (value) => (value instanceof Node ? value.textContent : String(value));
  const known = (found) => trials.estimates.get(found.number);
  return [
    difference ? h("p", { class: "verdict" }, `On the same ${count(difference.examples)} validation examples trial ${first.number} is ${difference.mean >= 0 ? "better" : "worse"} by ${Math.abs(difference.mean).toFixed(4)} ± ${(1.96 * (difference.standard_error ?? 0)).toFixed(4)} (95%). This compares these two runs; the estimates below say what either would score if it were trained again.`) : null,
    h(
      "div",
      { class: "table" },
      h(
        "div",
        { class: "frame", tabindex: 0, role: "region", "aria-label": "the two trials" },
        h(
          "table",
          {},
          h("caption", {}, "Side by side; what differs is marked"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "hidden" }, "What")), [first, second].map((found) => h("th", { scope: "col" }, "Trial ", trialLink(base, found.number))))),
          h(
            "tbody",
            {},
            row("what it is", (found) => told(found.trial.description)),
            row("origin", (found) => told(found.trial.method ?? "discovered")),
            row("state", (found) => found.trial.state),
            row("score", (found) => score(found.trial.score ?? found.trial.last_score)),
            row("estimate", (found) => (known(found) ? estimate(known(found).mean, known(found).reach) : "–")),
            row("parameters", (found) => `${count(found.trial.stored_parameters)} (${percent(found.trial.stored_parameters / study.budget_parameters)} of the budget)`),
            row("share at attention", (found) => percent(found.trial.attention_share)),
            row("seed", (found) => String(found.trial.seed)),
          ),
        ),
      ),
    ),
    ["attention", "ffn"].map((side) => {
      const [one, other] = [first, second].map((found) => found.trial[side]);
      const isDifferent = (name) => (one?.[name] ?? null) !== (other?.[name] ?? null);
      const differing = Object.keys(DIMENSIONS).filter(isDifferent).length;
      return [h("h2", {}, `At ${side === "ffn" ? "the FFN" : "attention"}: ${differing === 0 ? "the same" : `${differing} differ`}`), dimensions([[`trial ${first.number}`, one], [`trial ${second.number}`, other]], isDifferent)];
    }),
    h("h2", {}, "In a block"),
    h("div", { class: "sides" }, [first, second].map((found) => h("section", {}, h("h3", {}, `Trial ${found.number}`), found.picture ? [picture(found.picture), formulas(found.picture)] : told(found.problem)))),
  ];
}
