// One colour per functional form, in every plot; the rest as the page has it.

const forms = JSON.parse(document.body.dataset.colours);

/** Of the edits of a side; several forms have the colour of the first. */
export const formColour = (form) => forms[String(form ?? "nothing").split("+")[0]] ?? "#666699";

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
