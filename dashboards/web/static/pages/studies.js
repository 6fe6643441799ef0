import { ask } from "../data.js";
import { fill, h, told } from "../dom.js";
import { count, moment, percent, score } from "../format.js";
import { Table } from "../table.js";
import { states } from "../parts.js";
import { tagList } from "../remarks.js";

export async function show({ place, api }) {
  const { storage, studies } = await ask(`${api}studies.json`);
  const table = new Table(
    [
      { name: "name", title: "Study", isMain: true, value: (row) => row.name, cell: (row) => h("a", { href: `studies/${row.id}/` }, told(row.name)) },
      { name: "task", title: "Task", value: (row) => row.task, cell: (row) => (row.confirms === null ? h("a", { href: `task/?name=${encodeURIComponent(row.task)}` }, told(row.task)) : told(row.task)), hint: "all studies of the task side by side" },
      { name: "backbone", title: "Backbone", value: (row) => row.backbone, cell: (row) => told(row.backbone) },
      { name: "budget", title: "Budget", isNumber: true, value: (row) => row.budget_parameters, cell: (row) => `${count(row.budget_parameters)} (${percent(row.budget_parameters / row.backbone_parameters, 2)})` },
      { name: "trials", title: "Trials", isMain: true, isNumber: true, value: (row) => total(row.counts), cell: (row) => `${count(ended(row.counts))} / ${count(Math.max(row.planned ?? 0, total(row.counts)))}` },
      { name: "running", title: "States", value: (row) => row.counts.running, cell: (row) => states(row.counts), kind: "tight" },
      { name: "best", title: "Highest score", isMain: true, hint: "mean over seeds where a trial was repeated", isNumber: true, value: (row) => row.best, cell: (row) => (row.best === null || row.confirms !== null ? "–" : [score(row.best), " ", h("span", { class: "quiet" }, told(row.metric))]) },
      { name: "tags", title: "Tags", isOptional: true, value: (row) => row.tags.join(", "), cell: (row) => tagList(row.tags), kind: "tight" },
      { name: "note", title: "Note", isHidden: true, value: (row) => row.note, cell: (row) => told(row.note), kind: "words" },
      { name: "created", title: "Begun (UTC)", value: (row) => row.created_at, cell: (row) => moment(row.created_at).slice(0, 16), kind: "tight" },
      { name: "ended", title: "Last ended", value: (row) => row.ended_at, cell: (row) => moment(row.ended_at).slice(0, 16), kind: "tight" },
      { name: "confirms", title: "Confirms", value: (row) => row.confirms, cell: (row) => (row.confirms === null ? "" : told(row.confirms)) },
    ],
    { caption: "Studies of the storage", name: "studies", hasTools: true },
  );
  fill(place, h("p", { class: "quiet" }, "Storage: ", told(storage)), table.show([...studies].reverse()));
}

const total = (counts) => Object.values(counts).reduce((sum, one) => sum + one, 0);
const ended = (counts) => counts.complete + counts.pruned + counts.failed;
