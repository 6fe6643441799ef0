import { onChange, picks } from "../address.js";
import { colour, formColour, stateColour } from "../colours.js";
import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, duration, estimate, moment, percent } from "../format.js";
import { Plot } from "../plots.js";
import { bar, curveData, curvesOf, curveTraces, hover, pickedBar, scoreText, states, tile, trialColumns, trialLink, watched } from "../parts.js";
import { Remarks, stopButton, upkeep } from "../remarks.js";
import { frontLine, frontOf } from "../scales.js";
import { Table } from "../table.js";
import { comparisons } from "./confirmations.js";

const RECENT = 30;
const POINTS = 2000;

export async function show(page) {
  const { place, root, base, api, isLive, problem } = page;
  const remarks = new Remarks(page);
  const parts = { head: h("div"), compared: h("div"), plots: h("div", { class: "grid two" }), running: h("section"), ended: h("section"), events: h("section"), upkeep: h("div") };
  const history = new Plot("Scores as trials ended", { logs: "y", hint: "One point per trial; line: best so far (mean over seeds where a trial was repeated). Diamonds: published methods." });
  const front = new Plot("Pareto front of score and size", { height: 340, logs: "y", hint: "Expected score if trained again. Line: no smaller trial is expected to score more." });
  const curves = new Plot("Curves", { logs: "xy", hint: "Running trials, marked trials and the best ten. Dotted lines: steps at which trials are compared." });
  fill(place, parts.head, remarks.element, parts.compared, pickedBar(base), parts.plots, parts.running, parts.ended, parts.events, parts.upkeep);
  let compare = null;
  let now = null;
  let tables = null;

  const draw = async (trials) => {
    now = await ask(`${api}live.json`);
    tables ??= tablesOf(trials, page, () => now);
    head(parts.head, trials, now, page);
    remarks.show(trials, null);
    if (page.mayWrite && !parts.upkeep.firstChild) parts.upkeep.append(upkeep(page, trials.study));
    if (trials.study.confirms === null) {
      if (!history.element.isConnected) parts.plots.append(...(trials.study.objectives.length > 1 ? [front.element] : []), curves.element, history.element);
      if (front.element.isConnected) drawFront(front, trials);
      drawHistory(history, trials);
      await drawCurves(curves, trials, api, isLive);
    } else {
      compare ??= comparisons({ ...page, base: isLive ? `${root}studies/${trials.study.parent_id}/` : null }, parts.compared);
      await compare();
    }
    drawRunning(parts.running, trials, now, tables);
    const recent = trials.rows.filter((one) => one.ended_at !== null).sort((one, other) => other.ended_at - one.ended_at || other.number - one.number);
    fill(parts.ended, h("h2", {}, "Last ended trials"), tables.ended.show(recent.slice(0, RECENT)));
    fill(
      parts.events,
      h("h2", {}, "Events"),
      now.events.length === 0 ? h("p", { class: "quiet" }, "none") : h("ul", { class: "plain" }, [...now.events].reverse().map((one) => h("li", {}, h("time", { datetime: one.at }, moment(one.at)), h("strong", {}, told(one.kind)), one.trial === null ? "" : [" trial ", trialLink(base, one.trial)], ": ", told(one.text)))),
    );
  };
  const trials = await watched(page, draw);
  onChange(() => {
    Object.values(tables).forEach((table) => table.draw());
    if (curves.element.isConnected) drawCurves(curves, trials, api, isLive).catch(problem);
  });
}

function tablesOf(trials, page, now) {
  const { base } = page;
  const all = trialColumns(trials, base);
  const held = (trial) => now().running.find((one) => one.number === trial.number);
  const full = trials.study.rungs.at(-1);
  const columns = {
    step: { name: "step", title: "Step", isNumber: true, value: (one) => one.steps, cell: (one) => (full ? `${count(one.steps)} / ${count(full)}` : count(one.steps)) },
    worker: { name: "worker", title: "Worker", value: (one) => held(one)?.worker, cell: (one) => told(held(one)?.worker ?? "–"), kind: "tight" },
    attempt: { name: "attempt", title: "Attempt", isNumber: true, value: (one) => one.attempt, cell: (one) => one.attempt },
    since: { name: "since", title: "For", isNumber: true, value: (one) => held(one)?.started_at, cell: (one) => (held(one) ? duration((new Date(now().now) - new Date(held(one).started_at)) / 1000) : "–") },
    stop: { name: "stop", title: "", hint: "Stop", value: () => null, cell: (one) => stopButton(page, trials, one.number) },
    ended: { name: "ended", title: "Ended (UTC)", value: (one) => one.ended_at, cell: (one) => moment(one.ended_at), kind: "tight" },
  };
  return {
    running: new Table([all.number, ...(page.mayWrite ? [columns.stop] : []), all.description, columns.step, all.score, columns.worker, columns.attempt, columns.since], { caption: "Running trials", number: (one) => one.number, name: "running" }),
    ended: new Table([all.number, all.state, all.score, all.reason, all.method, all.description, all.tags, columns.ended], { caption: `The last ${RECENT} ended trials`, number: (one) => one.number, name: "ended" }),
    workers: new Table(
      [
        { name: "worker", title: "Worker", value: (one) => one.worker, cell: (one) => told(one.worker) },
        { name: "trials", title: "Trials", isNumber: true, value: (one) => one.trials, cell: (one) => one.trials },
        { name: "lease", title: "Lease", value: (one) => one.lease_seconds, cell: (one) => (one.lease_seconds < 0 ? h("span", { class: "state-failed" }, `no heartbeat; expired ${duration(-one.lease_seconds)} ago`) : `${duration(one.lease_seconds)} left`) },
      ],
      { caption: "Workers", name: "workers" },
    ),
  };
}

function head(place, trials, now, page) {
  const { base, root, isLive } = page;
  const { study, ranking, best } = trials;
  const ended = now.counts.complete + now.counts.pruned + now.counts.failed;
  const left = now.pace !== null && study.planned > ended && now.counts.running ? now.pace * (study.planned - ended) : null;
  const known = best ? trials.estimates.get(best.number) : null;
  const isSearch = study.confirms === null;
  const awaited = ranking === null && now.counts.complete > 0 ? "being computed …" : "";
  fill(
    place,
    h("p", { class: "quiet" }, study.confirms === null ? "" : ["confirms ", told(study.confirms), " on the test split; "], isLive ? h("a", { href: `${root}task/?name=${encodeURIComponent(study.task)}` }, told(study.task)) : told(study.task), " on ", told(study.backbone), `, budget ${count(study.budget_parameters)} parameters (${percent(study.budget_parameters / study.backbone_parameters, 2)} of the backbone), seed ${study.seed}, begun ${moment(study.created_at).slice(0, 16)} UTC`),
    bar(now.counts, study.planned),
    h("p", { class: "picked" }, h("span", {}, states(now.counts)), now.counts.running ? stopButton(page, trials, null) : null),
    h(
      "div",
      { class: "tiles" },
      tile("Trials ended", `${count(ended)} / ${count(Math.max(study.planned ?? 0, trials.rows.length))}`, left === null ? (now.counts.running ? "" : "no trial is running") : `about ${duration(left)} left`),
      isSearch && tile("Best trial", best ? scoreText(best) : "–", best ? [trialLink(base, best.number), " ", told(best.method ?? "discovered")] : awaited || "no trial is complete yet"),
      isSearch && tile("Estimate of the best trial", known ? estimate(known.mean, known.reach) : "–", known ? "if trained again, 95%" : awaited || "needs 12 measured trials"),
      isSearch && tile("Pruned", ended ? percent(now.counts.pruned / ended, 0) : "–", "of the trials that ended"),
      tile("Pace", now.pace === null ? "–" : duration(now.pace), "from one ending to the next"),
    ),
    ranking?.verdict.length ? h("p", { class: "verdict" }, ranking.verdict.map((line) => [told(line), h("br")])) : null,
  );
}

function drawRunning(place, trials, now, tables) {
  const running = trials.rows.filter((one) => one.state === "running");
  fill(place, h("h2", {}, "Running"), h("div", { class: "beside" }, tables.running.show(running), tables.workers.show(now.workers)));
}

function drawHistory(plot, trials) {
  let rows = trials.rows.filter((one) => one.score !== null || one.last_score !== null);
  const all = rows.length;
  if (all > POINTS) rows = rows.filter((one, place) => trials.places.get(one.number) <= 200 || place % Math.ceil(all / (POINTS - 200)) === 0);
  const traces = ["complete", "pruned", "failed", "running"].map((state) => {
    const some = rows.filter((one) => one.state === state);
    return {
      type: "scatter",
      mode: "markers",
      name: state,
      x: some.map((one) => one.number),
      y: some.map((one) => one.score ?? one.last_score),
      customdata: some.map((one) => one.number),
      text: some.map(hover),
      hoverinfo: "text",
      marker: { color: stateColour(state), size: 7, opacity: state === "complete" ? 0.9 : 0.5, symbol: some.map((one) => (one.method === null ? "circle" : "diamond")) },
    };
  });
  let best = -Infinity;
  const line = trials.rows.filter((one) => one.state === "complete" && one.replicate_of === null).flatMap((one) => (one.score > best ? ((best = one.score), [[one.number, best]]) : []));
  if (line.length) line.push([trials.rows.length - 1, best]);
  traces.push({ type: "scatter", mode: "lines", name: "highest so far", x: line.map(([x]) => x), y: line.map(([, y]) => y), line: { shape: "hv", color: colour("quiet"), width: 1.5 }, hoverinfo: "skip" });
  plot.show(
    traces.filter((trace) => trace.x.length),
    { xaxis: { title: "trial" }, yaxis: { title: trials.study.metric } },
    { columns: ["trial", "state", "score", "method"], rows: trials.rows.map((one) => [one.number, one.state, one.score ?? one.last_score, one.method]) },
    all > POINTS ? `${count(rows.length)} of ${count(all)} points` : "",
  );
}

/** Complete trials by the size that the study minimizes, those on the front in colour. */
function drawFront(plot, trials) {
  const name = trials.study.objectives[1] === "extra_flops" ? "extra_flops" : "stored_parameters";
  const complete = trials.rows.filter((one) => one.state === "complete" && one.replicate_of === null && one[name] !== null);
  const value = (one) => trials.estimates.get(one.number)?.mean ?? one.score;
  const size = (one) => one[name];
  const steps = frontOf(complete, size, value);
  const points = (title, some, tone, width) => ({ type: "scatter", mode: "markers", name: title, x: some.map(size), y: some.map(value), customdata: some.map((one) => one.number), text: some.map(hover), hoverinfo: "text", marker: { color: colour(tone), size: width, symbol: some.map((one) => (one.method === null ? "circle" : "diamond")) } });
  const traces = [frontLine(steps, size, value), points("others", complete.filter((one) => !steps.includes(one)), "faint", 6), points("on the front", steps, "accent", 9)];
  const sizes = complete.map(size).filter((one) => one > 0);
  const isWide = Math.max(...sizes) > 10 * Math.min(...sizes) && sizes.length === complete.length;
  plot.show(traces, { xaxis: { title: name.replace("_", " "), ...(isWide ? { type: "log", dtick: "D2" } : { tickformat: "," }) }, yaxis: { title: `expected ${trials.study.metric}` } }, { columns: ["trial", name, "expected", "score", "on_front"], rows: complete.map((one) => [one.number, size(one), value(one), one.score, steps.includes(one)]) });
}

async function drawCurves(plot, trials, api, isLive) {
  const running = trials.rows.filter((one) => one.state === "running").slice(0, 40);
  const best = (trials.ranking?.order ?? []).slice(0, 10).map((number) => trials.rows[number]);
  const shown = [...new Set([...running, ...best].map((one) => one.number).concat(picks()))];
  const curves = await curvesOf(api, isLive, shown);
  const traces = curveTraces(trials, curves, (trial) => formColour(trial.ffn_form ?? trial.attention_form));
  plot.show(traces, { xaxis: { title: "step" }, yaxis: { title: trials.study.metric }, shapes: rungLines(trials.study.rungs) }, curveData(curves));
}

export const rungLines = (rungs) => rungs.slice(0, -1).map((step) => ({ type: "line", x0: step, x1: step, yref: "paper", y0: 0, y1: 1, line: { dash: "dot", width: 1, color: colour("faint") } }));
