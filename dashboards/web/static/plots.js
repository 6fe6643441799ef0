// Plots by Plotly in the colours of the page. Each can be taken away: as SVG, as PNG, its data as CSV.

import { colour } from "./colours.js";
import { fill, h, visible } from "./dom.js";
import { fileName, saveCsv } from "./download.js";
import { onChange, pick, picks } from "./address.js";

const plots = new Set();
let loading = null;

/** Plotly's script, when the first plot is shown. */
function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${document.body.dataset.root}static/plotly/plotly.min.js`;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("the script of the plots cannot be read."));
    document.head.append(script);
  });
  return loading;
}

export class Plot {
  /** @param options {height, hint, logs: axes that can be logarithmic, such as "xy", onSelect(range): when points are boxed} */
  constructor(title, { height = 280, hint = "", logs = "", onSelect = null } = {}) {
    this.title = title;
    this.onSelect = onSelect;
    this.height = height;
    this.area = h("div", { class: "plot", role: "img", "aria-label": `${title}. ${hint}` });
    this.area.style.height = `${height}px`;
    this.note = h("span", { class: "note" });
    this.logs = new Set();
    const toggle = (name) => h("button", { type: "button", "aria-label": `logarithmic ${name} axis of: ${title}`, "aria-pressed": "false", onclick: (event) => this.toggle(name, event.target) }, `log ${name}`);
    const button = (name, take) => h("button", { type: "button", "aria-label": `${name} of: ${title}`, onclick: take }, name);
    this.element = h(
      "figure",
      {},
      h("figcaption", {}, h("strong", {}, title), " ", this.note, h("span", { class: "downloads" }, [...logs].map(toggle), button("SVG", () => this.image("svg")), button("PNG", () => this.image("png")), button("CSV", () => this.csv()))),
      this.area,
      hint ? h("p", { class: "quiet hint" }, hint) : null,
    );
    this.columns = [];
    this.rows = [];
    this.revision = 0;
    this.drawn = Promise.resolve();
    plots.add(this);
  }

  /**
   * @param traces of Plotly; customdata holds numbers of trials
   * @param layout of Plotly, without colours
   * @param data {columns, rows} that the CSV holds
   */
  show(traces, layout, data, note = "") {
    this.traces = traces;
    this.layout = layout;
    this.columns = data.columns;
    this.rows = data.rows;
    fill(this.note, note);
    this.draw();
    return this.element;
  }

  toggle(name, button) {
    const isOn = !this.logs.delete(name);
    if (isOn) this.logs.add(name);
    button.setAttribute("aria-pressed", String(isOn));
    this.draw();
  }

  draw() {
    if (this.traces === undefined) return;
    this.drawn = this.drawn.then(async () => {
      const Plotly = await plotly();
      if (!this.area.isConnected) return;
      const axes = [...this.logs].map((name) => `${name}axis`).map((name) => [name, { ...this.layout[name], type: "log", dtick: undefined }]);
      const { traces, layout } = themed(withPicks(this.traces), { ...this.layout, ...Object.fromEntries(axes) }, this.height);
      // Else Plotly takes data that are equal to those before for drawn, and the ranges of their axes are lost.
      layout.datarevision = this.revision += 1;
      layout.annotations = [...(layout.annotations ?? []), ...namesOf(traces, layout)];
      await Plotly.react(this.area, traces, layout, { displayModeBar: false, responsive: true, showTips: false });
      if (!this.isHeard) {
        this.isHeard = true;
        this.area.on("plotly_click", (event) => {
          const number = numberOf(event.points[0]);
          if (Number.isInteger(number)) pick(number);
        });
        if (this.onSelect) this.area.on("plotly_selected", (event) => event?.range && this.onSelect(event.range));
      }
      this.area.dataset.drawn = String(Number(this.area.dataset.drawn ?? 0) + 1);
    });
    this.drawn.catch((error) => fill(this.area, h("p", { class: "problem" }, error.message)));
  }

  async image(format) {
    const Plotly = await plotly();
    const size = { width: 900, height: Math.max(560, this.layout.height ?? 0), scale: format === "png" ? 2 : 1 };
    // One after another: Plotly makes one image at a time.
    const made = this.drawn.then(() => Plotly.downloadImage(this.area, { format, filename: fileName(this.title), ...size }));
    this.drawn = made.catch(() => null);
    await made;
  }

  csv() {
    saveCsv(this.title, this.columns, this.rows);
  }
}

const numberOf = (point) => {
  const found = point.customdata ?? point.data?.customdata?.[0];
  return Array.isArray(found) ? found[0] : found;
};

/** Rings about the points of the trials that are marked; their lines in full, the others faint. */
function withPicks(traces) {
  const marked = new Set(picks());
  if (marked.size === 0) return traces;
  const x = [];
  const y = [];
  const numbers = [];
  const found = traces.map((trace) => {
    if (trace.meta === "marked by itself") return trace;
    const ofTrial = trace.meta === "curve";
    if (ofTrial) return { ...trace, opacity: marked.has(trace.customdata[0]) ? 1 : 0.25, line: { ...trace.line, width: marked.has(trace.customdata[0]) ? 3.5 : 1 } };
    if (Array.isArray(trace.customdata)) {
      trace.customdata.forEach((given, place) => {
        const number = Array.isArray(given) ? given[0] : given;
        if (!marked.has(number) || trace.x?.[place] === undefined || trace.x[place] === null || trace.y[place] === null) return;
        x.push(trace.x[place]);
        y.push(trace.y[place]);
        numbers.push(number);
      });
    }
    return trace;
  });
  if (x.length === 0) return found;
  const ring = { type: "scatter", mode: "markers", x, y, customdata: numbers, name: "marked", showlegend: false, hoverinfo: "skip", cliponaxis: false, marker: { symbol: "circle-open", size: 16, line: { width: 2.5 } }, meta: "ring" };
  return [...found, ring];
}

/** The numbers of the trials that are ringed, beside their rings, so that no point is crossed. */
function namesOf(traces, layout) {
  const at = (axis, value) => (axis?.type === "log" ? Math.log10(value) : value);
  const { color } = traces.at(-1)?.marker ?? {};
  const rings = traces.filter((trace) => trace.meta === "ring");
  return rings.flatMap(({ x, y, customdata }) =>
    customdata.map((number, place) => ({ x: at(layout.xaxis, x[place]), y: at(layout.yaxis, y[place]), text: String(number), font: { color }, ax: 26, ay: -24, standoff: 9, arrowhead: 0, arrowwidth: 1, arrowcolor: color, bgcolor: layout.paper_bgcolor, bordercolor: color, borderpad: 1 })),
  );
}

function themed(traces, layout, height) {
  const [ink, quiet, line, back, accent] = ["ink", "quiet", "line", "panel", "mark"].map(colour);
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line, automargin: true, title: { font: { size: 12, color: quiet } } };
  const axes = Object.fromEntries(
    Object.entries({ xaxis: {}, yaxis: {}, ...layout })
      .filter(([name]) => /^[xy]axis\d*$/.test(name))
      .map(([name, own]) => [name, { ...axis, ...own, title: { ...axis.title, text: plain(typeof own.title === "string" ? own.title : (own.title?.text ?? "")) } }]),
  );
  const font = { family: "system-ui, sans-serif", size: 12, color: ink };
  return {
    traces: traces.map((trace) => (trace.meta === "ring" ? { ...trace, marker: { ...trace.marker, color: accent, line: { ...trace.marker.line, color: accent } } } : trace)),
    layout: {
      margin: { l: 52, r: 12, t: 10, b: 42 },
      hovermode: "closest",
      legend: { orientation: "h", y: -0.3, x: 0, font: { size: 11 }, itemsizing: "constant" },
      ...layout,
      ...axes,
      font,
      height,
      autosize: true,
      annotations: layout.annotations?.map((one) => ({ bgcolor: back, ...one })),
      paper_bgcolor: back,
      plot_bgcolor: back,
      hoverlabel: { font: { family: "system-ui, sans-serif", size: 12 }, align: "left", namelength: 0 },
    },
  };
}

/** What hovering shows: text of the page, so that no mark-up of Plotly's own is read from names. */
export const plain = (text) => visible(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export function redraw() {
  for (const plot of plots) plot.area.isConnected ? plot.draw() : plots.delete(plot);
}

onChange(redraw);
