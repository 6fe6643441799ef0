// Files that the page makes: rows as CSV and as JSON.

import { h, visible } from "./dom.js";

/** @param columns names, @param rows lists of values in their order */
export function saveCsv(title, columns, rows) {
  const lines = [columns, ...rows].map((row) => row.map(csvCell).join(","));
  save(`${fileName(title)}.csv`, "text/csv", `${lines.join("\r\n")}\r\n`);
}

export function saveJson(title, columns, rows) {
  const entries = rows.map((row) => Object.fromEntries(columns.map((name, place) => [name, row[place] ?? null])));
  save(`${fileName(title)}.json`, "application/json", `${JSON.stringify(entries, null, 1)}\n`);
}

export const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "plot";

function save(download, type, text) {
  const link = h("a", { download, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A value for CSV. A text that a spreadsheet would take for a formula is kept a text. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = visible(value);
  return `"${(/^[=+\-@]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
