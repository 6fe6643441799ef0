// Tables that are sorted, marked and read by screen readers; long ones show their beginning.

import { fill, h } from "./dom.js";
import { pick, picks, read, write } from "./address.js";

const STEP = 100;

/**
 * @param columns a list of {name, title, value(row), cell(row), isNumber, hint}
 * @param options {caption, name: of its order in the address, number(row): of the trial, most}
 */
export class Table {
  constructor(columns, { caption, name = "", number = null, isWide = false } = {}) {
    this.columns = columns;
    this.name = name;
    this.number = number;
    this.shown = STEP;
    this.rows = [];
    this.order = read(name && `sort-${name}`);
    this.head = h("thead");
    this.body = h("tbody");
    this.more = h("p", { class: "more" });
    const table = h("table", { class: isWide ? "wide" : "" }, h("caption", {}, caption), this.head, this.body);
    this.frame = h("div", { class: "frame", tabindex: 0, role: "region", "aria-label": caption }, table);
    this.element = h("div", { class: "table" }, this.frame, this.more);
    // The head of a table that is no wider than its place stays in sight as the page is scrolled.
    new ResizeObserver(() => this.frame.classList.toggle("fits", table.offsetWidth <= this.frame.clientWidth)).observe(table);
  }

  show(rows) {
    this.rows = rows;
    this.draw();
    return this.element;
  }

  draw() {
    const [key, way] = this.order.split(":");
    const column = this.columns.find((one) => one.name === key);
    const rows = column ? sorted(this.rows, column, way === "down" ? -1 : 1) : this.rows;
    const marked = new Set(picks());
    const isSorted = Boolean(this.name);
    fill(
      this.head,
      h(
        "tr",
        {},
        this.number ? h("th", { scope: "col", class: "pick" }, h("span", { class: "hidden" }, "Marked")) : null,
        this.columns.map((one) => {
          const sort = one === column ? (way === "down" ? "descending" : "ascending") : null;
          const title = one.title;
          return h(
            "th",
            { scope: "col", class: one.isNumber ? "number" : "", "aria-sort": sort, title: one.hint },
            isSorted && title ? h("button", { type: "button", "data-key": one.name, onclick: () => this.sort(one, sort) }, title, h("span", { "aria-hidden": "true" }, sort ? (way === "down" ? " ▾" : " ▴") : "")) : title,
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
          this.columns.map((one) => h("td", { class: [one.isNumber ? "number" : "", one.kind ?? ""].join(" ").trim() }, one.cell(row))),
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
