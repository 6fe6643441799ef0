// The address holds the state of a page: filters, order, and which trials are marked. Links between pages keep it.

const listeners = new Set();

export const given = () => new URLSearchParams(location.search);
export const read = (name, otherwise = "") => given().get(name) ?? otherwise;

/** Change the address; an empty value leaves it. */
export function write(values, { isNew = false } = {}) {
  const now = given();
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) now.delete(name);
    else now.set(name, value);
  }
  const text = now.toString();
  history[isNew ? "pushState" : "replaceState"](null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
  keepLinks();
  for (const listener of listeners) listener();
}

export function onChange(listener) {
  listeners.add(listener);
}

/** The trials that are marked, in the order in which they were. */
export function picks() {
  return read("pick")
    .split(",")
    .filter((text) => /^\d{1,15}$/.test(text))
    .map(Number);
}

export function pick(number, isOn = !picks().includes(number)) {
  const others = picks().filter((one) => one !== number);
  write({ pick: (isOn ? [...others, number] : others).join(",") });
}

/** Links that are marked so take what is marked, and the filters, along. */
export function keepLinks() {
  const now = given();
  const kept = new URLSearchParams();
  for (const name of ["pick", "state", "origin", "attention", "ffn", "colour", "text", "brush"]) if (now.get(name)) kept.set(name, now.get(name));
  for (const link of document.querySelectorAll("a[data-keep]")) {
    const [path] = link.getAttribute("href").split("?");
    const text = kept.toString();
    link.setAttribute("href", text ? `${path}?${text}` : path);
  }
}

addEventListener("popstate", () => listeners.forEach((listener) => listener()));
