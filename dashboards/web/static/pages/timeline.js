import { onChange, picks } from "../address.js";
import { colour, stateColour } from "../colours.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, duration, percent } from "../format.js";
import { hover, pickedBar, watched } from "../parts.js";
import { plain, Plot } from "../plots.js";
import { Table } from "../table.js";

const BARS = 3000;

export async function show(page) {
  const { place, base, api, problem } = page;
  const box = h("div");
  const legend = h("div", { class: "legend" }, ["complete", "pruned", "failed", "running", "lost"].map((ending) => [h("span", { class: `state-${ending === "lost" ? "queued" : ending}` }, "■ "), ending]).map((one) => h("span", {}, one)));
  const table = new Table(
    [
      { name: "worker", title: "Worker", value: (one) => one.worker, cell: (one) => told(one.worker), kind: "tight" },
      { name: "attempts", title: "Attempts", isNumber: true, value: (one) => one.bars.length, cell: (one) => count(one.bars.length) },
      { name: "lost", title: "Lost", isNumber: true, value: (one) => one.lost, cell: (one) => count(one.lost), hint: "attempts that were interrupted; their trials continue in the next attempt" },
      { name: "slots", title: "At once", isNumber: true, value: (one) => one.lanes, cell: (one) => count(one.lanes), hint: "largest number of trials trained at the same time" },
      { name: "busy", title: "Busy", isNumber: true, value: (one) => one.busy, cell: (one) => percent(one.busy, 0), hint: "share of the time between its first and its last trial spent training" },
      { name: "span", title: "From first to last", isNumber: true, value: (one) => one.span, cell: (one) => duration(one.span), kind: "tight" },
    ],
    { caption: "Workers", name: "workers", hasTools: true },
  );
  let plot = null;
  const draw = async (trials) => {
    const { columns, rows, now } = await ask(`${api}timeline.json`);
    const bars = rows.slice(-BARS).map((row) => barOf(Object.fromEntries(columns.map((name, at) => [name, row[at]])), new Date(now).getTime()));
    const workers = byWorker(bars);
    const lanes = workers.reduce((sum, one) => sum + one.lanes, 0);
    const height = Math.min(900, Math.max(220, 90 + 22 * lanes));
    if (plot?.height !== height) plot = new Plot("Trials by worker", { height, hint: "One bar per attempt. Drag to zoom; double click to reset." });
    fill(box, plot.element);
    plot.show(traces(workers, trials), layout(workers, bars, plot.area.clientWidth), { columns, rows }, rows.length > BARS ? `the last ${count(BARS)} of ${count(rows.length)}` : "");
    table.show(workers);
  };
  fill(place, pickedBar(base), legend, box, table.element);
  const trials = await watched(page, draw);
  onChange(() => draw(trials).catch(problem));
}

function barOf(attempt, now) {
  const begin = new Date(attempt.started_at).getTime();
  return { ...attempt, begin, end: Math.max(begin + 1, attempt.ended_at ? new Date(attempt.ended_at).getTime() : now), ending: attempt.ending ?? "running" };
}

/** Workers by name, each with as many lanes as it trained trials at once; the bars know their lanes. */
function byWorker(bars) {
  const groups = Map.groupBy ? Map.groupBy(bars, (one) => one.worker) : new Map([...new Set(bars.map((one) => one.worker))].map((name) => [name, bars.filter((one) => one.worker === name)]));
  let first = 0;
  return [...groups].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true })).map(([worker, own]) => {
    const free = [];
    for (const bar of own) {
      const found = free.findIndex((last) => last.end <= bar.begin);
      const lane = found < 0 ? free.length : found;
      bar.lane = first + lane;
      bar.isDim = free[lane] !== undefined && !free[lane].isDim; // else neighbours would look like one
      free[lane] = bar;
    }
    let busy = 0;
    let until = -Infinity;
    for (const { begin, end } of own) [busy, until] = [busy + Math.max(0, end - Math.max(begin, until)), Math.max(until, end)];
    const span = Math.max(...own.map((one) => one.end)) - own[0].begin;
    const found = { worker, bars: own, first, lanes: free.length, lost: own.filter((one) => one.ending === "lost").length, busy: busy / span, span: span / 1000 };
    first += free.length;
    return found;
  });
}

const clock = (time) => new Date(time).toISOString().slice(0, 23);

function traces(workers, trials) {
  const marked = new Set(picks());
  return ["complete", "pruned", "failed", "lost", "running"].flatMap((ending) => {
    const some = workers.flatMap((one) => one.bars).filter((one) => one.ending === ending);
    const said = (one) => `${hover(trials.rows[one.trial])}<br>attempt ${one.attempt}: ${ending} after ${duration((one.end - one.begin) / 1000)}`;
    const isMarked = some.map((one) => marked.has(one.trial));
    if (some.length === 0) return [];
    return [{
      type: "bar",
      orientation: "h",
      name: ending,
      base: some.map((one) => clock(one.begin)),
      x: some.map((one) => one.end - one.begin),
      y: some.map((one) => -one.lane),
      width: 0.86,
      customdata: some.map((one) => one.trial),
      text: some.map((one) => String(one.trial)),
      textposition: "inside",
      insidetextanchor: "middle",
      textangle: 0,
      constraintext: "inside",
      hovertext: some.map((one) => (trials.rows[one.trial] ? said(one) : "")),
      hoverinfo: "text",
      textfont: { color: colour("panel"), size: 11 },
      marker: { color: stateColour(ending), opacity: some.map((one) => (one.isDim ? 0.7 : 0.95)), line: { width: isMarked.map((is) => (is ? 3 : 0)), color: colour("mark") } },
      meta: "marked by itself",
    }];
  });
}

function layout(workers, bars, width) {
  const lines = workers.slice(1).map((one) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0.5 - one.first, y1: 0.5 - one.first, line: { width: 1, color: colour("line") } }));
  const last = workers.at(-1);
  return {
    barmode: "overlay",
    bargap: 0,
    showlegend: false,
    shapes: lines,
    xaxis: { type: "date", title: "time (UTC)", range: bars.length ? [clock(Math.min(...bars.map((one) => one.begin))), clock(Math.max(...bars.map((one) => one.end)))] : undefined, nticks: width < 600 ? 4 : 10 },
    yaxis: { tickvals: workers.map((one) => -(one.first + (one.lanes - 1) / 2)), ticktext: workers.map((one) => plain(one.worker)), range: [last ? 0.5 - last.first - last.lanes : -1, 0.5], fixedrange: true, zeroline: false, showgrid: false },
  };
}
