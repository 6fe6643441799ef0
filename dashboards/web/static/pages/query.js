import { read, write } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told, visible } from "../dom.js";
import { count } from "../format.js";
import { Table } from "../table.js";

/** Questions about one study, or about all of the storage. */
function examples(study) {
  const own = study === null ? "" : `study = '${study.replaceAll("'", "''")}'`;
  const where = (...conditions) => (conditions.some(Boolean) ? `\nwhere ${conditions.filter(Boolean).join(" and ")}` : "");
  return [
    ["Trials by state", `select state, count(*) as trials from budget_use${where(own)}\ngroup by state order by trials desc`],
    ["Best trials", `select place, trial, method, score, description from leaderboard${where(own)}\norder by study, place limit 20`],
    ["Best forms by side", `select side, form, max(score) as best, count(*) as edits\nfrom configurations join budget_use using (trial_id)${where(own && `budget_use.${own}`, "state = 'complete'")}\ngroup by side, form order by best desc limit 20`],
    ["Pruned trials by step", `select steps, count(*) as pruned from leaderboard${where(own, "state = 'pruned'")}\ngroup by steps order by steps`],
  ];
}

export async function show({ place, root, api }) {
  const { study, sources } = await ask(`${api}sources.json`);
  const asked = examples(study);
  const box = h("textarea", { id: "sql", spellcheck: "false", "aria-describedby": "sql-hint" });
  box.value = read("sql", asked[0][1]);
  const result = h("section", { "aria-live": "polite" });
  const form = h(
    "form",
    {},
    h("label", { for: "sql" }, "SQL"),
    box,
    h("p", { id: "sql-hint", class: "quiet hint" }, "One read-only statement; at most 1,000 rows are shown."),
    h("p", { class: "picked" }, h("button", { type: "submit" }, "Run (Ctrl+Enter)"), asked.map(([title, sql]) => h("button", { type: "button", onclick: () => ((box.value = sql), answer()) }, title))),
  );
  const answer = async () => {
    write({ sql: box.value, ...(box.value === read("sql") ? {} : { "columns-answer": "", "sort-answer": "" }) });
    try {
      const found = await ask(`${root}api/query.json`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sql: box.value }) });
      const columns = found.columns.map((name, place) => {
        const isNumber = found.rows.some((row) => typeof row[place] === "number") && found.rows.every((row) => row[place] === null || typeof row[place] === "number");
        return { name: String(place), saved: name, title: visible(name), isNumber, value: (row) => row[place], cell: (row) => (row[place] === null ? "–" : told(row[place])), kind: isNumber ? "" : "tight" };
      });
      const table = new Table(columns, { caption: `${count(found.rows.length)} rows`, name: "answer", hasTools: true });
      fill(result, table.show(found.rows), found.is_cut ? h("p", { class: "quiet" }, "More rows are not shown.") : null);
      result.dataset.answers = String(Number(result.dataset.answers ?? 0) + 1);
    } catch (error) {
      fill(result, h("p", { class: "problem", role: "alert" }, visible(error.message)));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  box.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), answer()));
  fill(place, study === null ? null : h("p", { class: "quiet" }, "The storage contains all studies; the examples select ", told(study), "."), form, result, listed(sources));
  if (read("sql")) await answer();
}

/** Every view and table with its columns. */
function listed(sources) {
  const entry = (one) => h("li", {}, h("code", {}, one.name), " ", marked(one.about), h("br"), h("span", { class: "quiet formula" }, one.columns.join(", ")));
  return h("section", {}, h("h2", {}, "Views and tables"), h("ul", { class: "plain" }, sources.map(entry)));
}

/** A text whose words between backticks are code. */
const marked = (text) => text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));
