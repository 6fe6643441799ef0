import { read, write } from "../address.js";
import { ask } from "../data.js";
import { fill, h, told, visible } from "../dom.js";
import { count } from "../format.js";
import { Table } from "../table.js";

const EXAMPLES = [
  ["How many trials are in each state", "select state, count(*) as trials from trials group by state order by trials desc"],
  ["The best pairs of forms", "select attention_form, ffn_form, max(score) as best, count(*) as trials\nfrom trials where state = 'complete'\ngroup by attention_form, ffn_form order by best desc limit 20"],
  ["What was pruned, and when", "select steps, count(*) as pruned from trials where state = 'pruned' group by steps order by steps"],
  ["Seconds per worker", "select worker, count(*) as attempts from attempts group by worker order by attempts desc"],
];

export async function show({ place, api }) {
  const box = h("textarea", { id: "sql", spellcheck: "false", "aria-describedby": "sql-hint" });
  box.value = read("sql", EXAMPLES[0][1]);
  const result = h("section", { "aria-live": "polite" });
  const run = h("button", { type: "submit" }, "Ask (Ctrl+Enter)");
  const form = h(
    "form",
    {},
    h("label", { for: "sql" }, "SQL"),
    box,
    h("p", { id: "sql-hint", class: "quiet hint" }, "One statement that reads; the connection cannot write. At most 1,000 rows are shown. Tables: studies, trials, attempts, readings, examples, artefacts, events."),
    h("p", { class: "picked" }, run, EXAMPLES.map(([title, sql]) => h("button", { type: "button", onclick: () => ((box.value = sql), answer()) }, title))),
  );
  const answer = async () => {
    write({ sql: box.value });
    run.disabled = true;
    try {
      const found = await ask(`${api}query.json`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sql: box.value }) });
      const columns = found.columns.map((name, place) => {
        const isNumber = found.rows.some((row) => typeof row[place] === "number") && found.rows.every((row) => row[place] === null || typeof row[place] === "number");
        return { name: String(place), title: visible(name), isNumber, value: (row) => row[place], cell: (row) => (row[place] === null ? "–" : told(row[place])), kind: isNumber ? "" : "tight" };
      });
      const table = new Table(columns, { caption: `${count(found.rows.length)} rows`, name: "answer" });
      fill(result, table.show(found.rows), found.is_cut ? h("p", { class: "quiet" }, "and more rows, which are not shown") : null);
      result.dataset.answers = String(Number(result.dataset.answers ?? 0) + 1);
    } catch (error) {
      fill(result, h("p", { class: "problem", role: "alert" }, visible(error.message)));
    } finally {
      run.disabled = false;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  box.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), answer()));
  fill(place, form, result);
  if (read("sql")) await answer();
}
