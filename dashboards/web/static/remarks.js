// Annotations of a study and of its trials: notes, tags, requests to stop.

import { ask } from "./data.js";
import { fill, h, told, visible } from "./dom.js";

const NOTHING = { note: "", tags: [], is_to_stop: false };

/** What was said of a trial; of the study with null. */
export const remarkOn = (trials, number) => trials.annotations.get(number) ?? NOTHING;

export const tagList = (tags) => tags.map((tag) => h("span", { class: "tag" }, told(tag)));

const send = (api, said, name = "annotations") => ask(`${api}${name}.json`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(said) });

/** Tags and note of a trial, or of the study; what is being written stays when the page is drawn anew. */
export class Remarks {
  constructor({ api, mayWrite }) {
    this.mayWrite = mayWrite;
    this.api = api;
    this.fields = {
      tags: h("input", { name: "tags", type: "text", placeholder: "tag, another tag" }),
      note: h("textarea", { name: "note", rows: 3 }),
    };
    this.status = h("span", { class: "quiet", role: "status" });
    const { tags, note } = this.fields;
    const form = h("form", { class: "remarks", "aria-label": "Annotations" }, h("label", {}, "Tags", tags), h("label", {}, "Note", note), h("p", { class: "picked" }, h("button", { type: "submit" }, "Save"), this.status));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.save().catch((error) => fill(this.status, error.message));
    });
    this.element = mayWrite ? form : h("div", { class: "remarks" });
    this.known = {};
  }

  /** The trial that it is about, and what is known of it. */
  show(trials, number) {
    const { note, tags } = remarkOn(trials, number);
    if (!this.mayWrite) {
      fill(this.element, tags.length ? h("p", {}, tagList(tags)) : null, note ? h("p", { class: "note-text" }, told(note)) : null);
      this.element.hidden = !(note || tags.length);
      return this.element;
    }
    const found = { tags: tags.join(", "), note };
    const isOther = this.number !== number;
    // A text that is being written replaces the one that was there when it was begun.
    for (const [name, field] of Object.entries(this.fields)) if (isOther || field.value === this.known[name]) field.value = this.known[name] = found[name];
    if (isOther) fill(this.status);
    this.found = found;
    this.number = number;
    return this.element;
  }

  async save() {
    const { tags, note } = this.fields;
    tags.value = [...new Set(tags.value.split(",").map((one) => one.trim()).filter(Boolean))].join(", ");
    for (const [kind, field] of Object.entries({ tags, note })) if (field.value !== this.known[kind]) await this.replace(kind, field.value);
    fill(this.status, "saved");
  }

  async replace(kind, text) {
    const known = this.known[kind];
    this.known[kind] = this.found[kind]; // if it is refused because of a newer text, that is shown, and replaced the next time
    await send(this.api, { kind, trial: this.number, text, known });
    this.known[kind] = text;
  }
}

/** Fields to rename a study, and to delete it by typing its name. */
export function upkeep({ api, root }, { name }) {
  const status = h("p", { class: "quiet", role: "status" });
  const form = (action, label, said, address) => {
    const field = h("input", { type: "text", name: action, autocomplete: "off", spellcheck: "false" });
    const change = async (event) => {
      event.preventDefault();
      try {
        const { left } = await send(api, said(field.value.trim()), "maintenance");
        if (left.length) fill(status, left.join(" "));
        else location.assign(address);
      } catch (error) {
        fill(status, error.message);
      }
    };
    return h("form", { class: "filters", "aria-label": action, onsubmit: change }, h("label", {}, label, field), h("button", { type: "submit", class: action === "Delete" ? "danger" : "" }, action));
  };
  return h(
    "details",
    {},
    h("summary", {}, "Rename or delete"),
    form("Rename", "New name", (to) => ({ kind: "rename", name, to }), location.href),
    form("Delete", [`Type ${visible(name)} to delete its records, its confirmations and all files`], (typed) => ({ kind: "delete", name: typed }), root),
    status,
  );
}

/** Whether a person says yes. */
function confirmed(question, action) {
  const answers = h("form", { method: "dialog", class: "picked" }, h("button", { value: "no" }, "Cancel"), h("button", { value: "yes", class: "danger" }, action));
  const dialog = h("dialog", { "aria-label": action }, h("p", {}, question), answers);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => (dialog.remove(), resolve(dialog.returnValue === "yes"))));
}

/** Stops a trial that runs; the study with null. */
export function stopButton({ api, mayWrite, problem }, trials, number) {
  if (!mayWrite) return null;
  if (number !== null && remarkOn(trials, number).is_to_stop) return h("span", { class: "state-failed" }, "stop requested");
  const name = number === null ? "Stop the study" : `Stop trial ${number}`;
  const question = number === null ? "The workers checkpoint their trials and the launch ends. The next launch continues the study." : `Trial ${number} fails at its next measurement, and its worker starts another. This cannot be undone.`;
  const button = h("button", { type: "button", class: "danger", "data-key": `stop-${number}`, "aria-label": name }, number === null ? name : "stop");
  button.addEventListener("click", async () => {
    try {
      if (!(await confirmed(question, name))) return;
      await send(api, { kind: "stop", trial: number });
      const said = h("span", { class: "state-failed", role: "status", tabindex: -1 }, "stop requested");
      button.replaceWith(said);
      said.focus();
    } catch (error) {
      problem(error);
    }
  });
  return button;
}
