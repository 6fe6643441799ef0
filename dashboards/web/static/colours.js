// One colour per functional form, in every plot; the rest as the page has it.

const forms = JSON.parse(document.body.dataset.colours);

/** Of the edits of a side; several forms have the colour of the first. */
export const formColour = (form) => forms[String(form ?? "none").split("+")[0]] ?? "#666699";

/** The colour that a name of the style sheet has now. */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const states = { complete: "good", pruned: "warn", failed: "bad", running: "accent", queued: "faint" };
export const stateColour = (state) => colour(states[state] ?? "faint");

/** Colours that are told apart, for what has none of its own. */
export const PALETTE = ["#0088cc", "#d55e00", "#009e73", "#cc79a7", "#8c6bd1", "#b8860b", "#a0522d", "#4d9221", "#c51b7d", "#2a9d8f"];

/** From low to high; to be seen on light and on dark. */
export const SEQUENCE = ["#6a4fd6", "#a83fb8", "#d6507e", "#ec7f4d", "#e5a823"];
