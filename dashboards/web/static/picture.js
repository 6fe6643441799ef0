// A block of the transformer with the edits of a configuration, their inputs and outputs.

import { formColour } from "./colours.js";
import { h, s, told } from "./dom.js";
import { tensors, words } from "./format.js";

const PORT = { height: 24 };
const EDIT = { width: 140, height: 38 };

export function picture(found) {
  return h("div", { class: "picture" }, found.panels.map((panel, place) => drawn(panel, place, found.norm)), found.outside.length ? outside(found.outside) : null);
}

function drawn(panel, place, norm) {
  const at = new Map(panel.ports.map((port) => [port.name, port]));
  const summary = panel.edits.length ? panel.edits.map((edit) => edit.said).join("; ") : "no edit here";
  const arrow = (id, fill) => s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { d: "M0 0 8 4 0 8Z", fill, class: fill ? null : "arrow" }));
  const colours = [...new Set(panel.edits.map((edit) => formColour(edit.form)))];
  const image = s(
    "svg",
    { viewBox: `0 0 ${panel.width} ${panel.height}`, role: "img", "aria-label": `${panel.title}: ${summary}` },
    s("defs", {}, arrow(`flow-${place}`, null), colours.map((one) => arrow(`edit-${place}-${one.slice(1)}`, one))),
    s("text", { x: 10, y: 20, class: "panel-title", "font-weight": 650 }, panel.title + (norm && place === 0 ? ` (${norm})` : "")),
    panel.flows.map(([from, to]) => flow(at.get(from), at.get(to), place)),
    panel.edits.map((edit, lane) => lines(edit, at, heights(panel.edits), lane, place)),
    panel.ports.map((port) => portBox(port, panel.edits.find((edit) => edit.write === port.name))),
    panel.edits.map(editBox),
  );
  return h("figure", {}, image);
}

function flow(from, to, place) {
  const [y1, y2] = [from.y - PORT.height / 2, to.y + PORT.height / 2 + 1];
  return s("path", { class: "flow", d: `M${from.x} ${y1}C${from.x} ${(y1 + y2) / 2} ${to.x} ${(y1 + y2) / 2} ${to.x} ${y2}`, "marker-end": `url(#flow-${place})` });
}

function portBox(port, edit) {
  const box = s("rect", { x: port.x - port.width / 2, y: port.y - PORT.height / 2, width: port.width, height: PORT.height, rx: 12, class: "port" });
  if (edit) {
    box.style.stroke = formColour(edit.form);
    box.style.strokeWidth = "2.5px";
  }
  return s("g", {}, box, s("text", { x: port.x, y: port.y + 4, "text-anchor": "middle" }, port.label));
}

function editBox(edit) {
  const box = s("rect", { x: edit.x - EDIT.width / 2, y: edit.y - EDIT.height / 2, width: EDIT.width, height: EDIT.height, rx: 5 });
  box.style.fill = `color-mix(in srgb, ${formColour(edit.form)} 22%, var(--panel))`;
  box.style.stroke = formColour(edit.form);
  return s(
    "g",
    {},
    s("title", {}, edit.said),
    box,
    s("text", { x: edit.x, y: edit.y - 2, "text-anchor": "middle", "font-weight": 600 }, words(edit.label)),
    s("text", { x: edit.x, y: edit.y + 12, "text-anchor": "middle", class: "small" }, `${words(edit.gate)}${edit.layers ? `, ${edit.layers} of layers` : ""}`),
  );
}

/** Dashed from what is read, solid to what is written. */
function lines(edit, at, meets, lane, place) {
  const tone = formColour(edit.form);
  const edge = edit.x - EDIT.width / 2;
  const line = (d, isRead) => {
    const path = s("path", { d, fill: "none", "stroke-width": 1.8, "stroke-dasharray": isRead ? "4 3" : null, "marker-end": `url(#edit-${place}-${tone.slice(1)})` });
    path.style.stroke = tone;
    return path;
  };
  const bend = edge - 14 - 5 * lane;
  const write = at.get(edit.write);
  const read = edit.read ? at.get(edit.read) : null;
  const right = (port) => port.x + port.width / 2;
  const [from, to] = [read ? read.y + meets(edit.read, lane, "read") : 0, write.y + meets(edit.write, lane, "write")];
  return [
    read ? line(`M${right(read)} ${from}C${bend} ${from} ${bend - 10} ${edit.y + 9} ${edge - 1} ${edit.y + 9}`, true) : null,
    line(`M${edge} ${edit.y - 9}C${bend - 10} ${edit.y - 9} ${bend} ${to} ${right(write) + 2} ${to}`, false),
  ];
}

/** Where the lines of a tensor meet it, above or below its middle: each at a height of its own. */
function heights(edits) {
  const ends = edits.flatMap((edit, lane) => ["write", "read"].map((way) => ({ port: edit[way], y: edit.y, lane, way })));
  return (port, lane, way) => {
    const own = ends.filter((end) => end.port === port).sort((one, other) => one.y - other.y);
    const place = own.findIndex((end) => end.lane === lane && end.way === way);
    return (place - (own.length - 1) / 2) * Math.min(10, (PORT.height - 6) / Math.max(1, own.length - 1));
  };
}

function outside(edits) {
  return h("figure", {}, h("figcaption", {}, h("strong", {}, "Outside the blocks")), h("ul", { class: "plain" }, edits.map((edit) => h("li", {}, edit.said))));
}

/** The formula of every edit, with the names of its tensors. */
export function formulas(found) {
  const edits = [...found.panels.flatMap((panel) => panel.edits), ...found.outside];
  const symbols = [...new Set(edits.flatMap((edit) => [edit.read, edit.write]))].filter((name) => name && tensors(name) !== name);
  const legend = h("p", { class: "quiet hint" }, symbols.map((name) => `${name} = ${tensors(name)}`).join(", "));
  const list = h("ul", { class: "plain" }, edits.map((edit) => {
    const dot = h("span", { class: "swatch", "aria-hidden": "true" });
    dot.style.background = formColour(edit.form);
    return h("li", {}, dot, h("strong", {}, words(edit.label)), ` at ${{ attn: "attention", ffn: "the FFN" }[edit.site] ?? words(edit.site)}, ${edit.insertion}: `, h("span", { class: "formula" }, told(edit.formula || edit.said)));
  }));
  return [list, symbols.length ? legend : null];
}
