// Tables that are sorted, marked and read by screen readers; long ones show their beginning.

import { fill, h } from "./dom.js";
import { pick, picks, read, write } from "./address.js";
import { saveCsv, saveJson } from "./download.js";

const STEP = 100;

/**
 * @param columns a list of {name, title, value(row), cell(row), isNumber, hint, isMain: first on a phone, isHidden: until it is chosen, isOptional: where no row has one, saved: its name in files}
 * @param options {caption, name: of its order in the address, number(row): of the trial, hasTools: to choose columns and take rows away}
 */
export class Table {
  constructor(columns, { caption, name = "", number = null, hasTools = false } = {}) {
    this.columns = matchMedia("(max-width: 600px)").matches ? [...columns.filter((one) => one.isMain), ...columns.filter((one) => !one.isMain)] : columns;
    this.name = name;
    this.number = number;
    this.shown = STEP;
    this.rows = [];
    this.order = read(name && `sort-${name}`);
    this.head = h("thead");
    this.body = h("tbody");
    this.more = h("p", { class: "more" });
    const table = h("table", {}, h("caption", { class: hasTools ? "hidden" : "" }, caption), this.head, this.body);
    this.frame = h("div", { class: "frame", tabindex: 0, role: "region", "aria-label": caption }, table);
    this.caption = caption;
    this.element = h("div", { class: "table" }, hasTools ? this.tools() : null, this.frame, this.more);
    // The head of a table that is no wider than its place stays in sight as the page is scrolled.
    new ResizeObserver(() => this.frame.classList.toggle("fits", table.offsetWidth <= this.frame.clientWidth)).observe(table);
  }

  show(rows) {
    this.rows = rows;
    this.draw();
    return this.element;
  }

  /** The columns that are shown unless others are chosen. */
  get usual() {
    return this.columns.filter((one) => !one.isHidden && !(one.isOptional && this.rows.every((row) => !one.value(row))));
  }

  /** The columns that the address names, else the usual ones. */
  get chosen() {
    const names = read(this.name && `columns-${this.name}`).split(",");
    const found = this.columns.filter((one) => names.includes(one.name));
    return found.length ? found : this.usual;
  }

  choose(column, isOn) {
    const before = this.chosen;
    const names = this.columns.filter((one) => (one === column ? isOn : before.includes(one))).map((one) => one.name);
    write({ [`columns-${this.name}`]: String(names) === String(this.usual.map((one) => one.name)) ? "" : names.join(",") });
    this.draw();
  }

  tools() {
    const box = (one) => h("input", { type: "checkbox", checked: this.chosen.includes(one), onchange: (event) => this.choose(one, event.target.checked) });
    const take = (save) => save(this.caption, this.chosen.map((one) => one.saved ?? one.name), this.ordered().map((row) => this.chosen.map((one) => one.value(row))));
    const boxes = h("div", { class: "columns" });
    const choices = h("details", { ontoggle: () => fill(boxes, this.columns.map((one) => h("label", {}, box(one), one.full ?? one.title))) }, h("summary", {}, "Columns"), boxes);
    const button = (name, save) => h("button", { type: "button", "aria-label": `${name} of: ${this.caption}`, onclick: () => take(save) }, name);
    return h("div", { class: "tools" }, h("strong", {}, this.caption), choices, h("span", { class: "downloads" }, button("CSV", saveCsv), button("JSON", saveJson)));
  }

  /** All rows in the order that is chosen. */
  ordered() {
    const [key, way] = this.order.split(":");
    const column = this.columns.find((one) => one.name === key);
    return column ? sorted(this.rows, column, way === "down" ? -1 : 1) : this.rows;
  }

  draw() {
    const [key, way] = this.order.split(":");
    const column = this.columns.find((one) => one.name === key);
    const rows = this.ordered();
    const columns = this.chosen;
    const marked = new Set(picks());
    const isSorted = Boolean(this.name);
    fill(
      this.head,
      h(
        "tr",
        {},
        this.number ? h("th", { scope: "col", class: "pick" }, h("span", { class: "hidden" }, "Marked")) : null,
        columns.map((one) => {
          const sort = one === column ? (way === "down" ? "descending" : "ascending") : null;
          const title = one.title;
          return h(
            "th",
            { scope: "col", class: one.isNumber ? "number" : "", "aria-sort": sort, title: one.hint },
            isSorted && title ? h("button", { type: "button", "data-key": one.name, onclick: () => this.sort(one, sort) }, title, h("span", { "aria-hidden": "true" }, sort ? (way === "down" ? " ▾" : " ▴") : "")) : title || h("span", { class: "hidden" }, one.hint),
          );
        }),
      ),
    );
    fill(
      this.body,
      rows.slice(0, this.shown).map((row) => {
        const number = this.number?.(row);
        const isMarked = marked.has(number);
        return h(
          "tr",
          { class: isMarked ? "marked" : "", "data-number": number },
          this.number
            ? h("td", { class: "pick" }, h("input", { type: "checkbox", checked: isMarked, "aria-label": `mark trial ${number}`, onchange: () => pick(number) }))
            : null,
          columns.map((one) => h("td", { class: [one.isNumber ? "number" : "", one.kind ?? ""].join(" ").trim() }, one.cell(row))),
        );
      }),
    );
    const hidden = rows.length - this.shown;
    fill(
      this.more,
      rows.length === 0 ? "none" : hidden > 0 ? [`${this.shown} of ${rows.length} rows `, h("button", { type: "button", "data-key": "grow", onclick: () => this.grow() }, `show ${Math.min(hidden, STEP)} more`)] : null,
    );
  }

  sort(column, now) {
    const first = column.isNumber ? "down" : "up";
    const way = now === null ? first : now === (first === "down" ? "descending" : "ascending") ? (first === "down" ? "up" : "down") : "";
    this.order = way ? `${column.name}:${way}` : "";
    write({ [`sort-${this.name}`]: this.order });
    this.draw();
  }

  grow() {
    this.shown += STEP;
    this.draw();
  }
}

function sorted(rows, column, sign) {
  const isMissing = (value) => value === null || value === undefined || value === "";
  return [...rows].sort((one, other) => {
    const [first, second] = [column.value(one), column.value(other)];
    if (isMissing(first) || isMissing(second)) return isMissing(first) - isMissing(second);
    return sign * (first < second ? -1 : first > second ? 1 : 0);
  });
}

/** Rows of two columns: what, and its value. */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.filter((pair) => pair).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
