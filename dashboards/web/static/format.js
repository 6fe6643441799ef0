// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en-US");

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
export const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));
export const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}%`);
export const rate = (value) => (value === null || value === undefined ? "–" : value.toExponential(1));
export const estimate = (mean, reach) => (mean === null || mean === undefined ? "–" : `${mean.toFixed(4)} ± ${reach.toFixed(4)}`);

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const all = Math.max(0, Math.round(seconds));
  const [hours, minutes, left] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  if (hours) return `${hours}h${String(minutes).padStart(2, "0")}m`;
  return minutes ? `${minutes}m${String(left).padStart(2, "0")}s` : `${left}s`;
}

export function moment(time) {
  if (time === null || time === undefined) return "–";
  const date = typeof time === "number" ? new Date(1000 * time) : new Date(time);
  return date.toISOString().slice(0, 19).replace("T", " ");
}

export const bytes = (value) => (value < 1024 ? `${value} B` : value < 2 ** 20 ? `${(value / 1024).toFixed(1)} kB` : `${(value / 2 ** 20).toFixed(1)} MB`);

const tensorNames = JSON.parse(document.body.dataset.tensors);

/** The tensors that edits read or write, as sentences name them: ``q+v`` is query+value, ``u+f`` is FFN up+output. */
export function tensors(value) {
  const [first, ...others] = String(value).split("+").map((one) => tensorNames[one] ?? one);
  return [first, ...others.map((one) => one.replace(/^(attention|FFN) /, ""))].join("+");
}

/** A word of the ledger as people read it. */
export const words = (name) => String(name).replaceAll("_", " ");
