// Elements from names and texts. Whatever a study holds is text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (``on…`` are listeners) and children: elements, texts, or lists of them; null is left out. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  element.append(...kept(children));
  return element;
}

/** Replace what an element holds; the keyboard's focus, and how far tables are scrolled, stay where they were. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = [...element.querySelectorAll(".frame")].map((frame) => [frame, frame.scrollLeft]);
  element.replaceChildren(...kept(children));
  for (const [frame, left] of scrolled) frame.scrollLeft = left;
  if (focused && focused !== document.activeElement) refocus(element, focused);
  return element;
}

/** Focus what was focused, else what stands in its place, else where it was. */
function refocus(element, focused) {
  const alike = [...element.querySelectorAll(focused.tagName)];
  const next = element.contains(focused) ? focused : (alike.find((one) => keyOf(one) === keyOf(focused)) ?? alike[0] ?? element);
  if (next.tabIndex < 0) next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

const keyOf = (one) => one.dataset.key ?? one.getAttribute("aria-label") ?? one.getAttribute("name") ?? one.textContent;

function kept(children) {
  const given = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return given.map((child) => (child instanceof Node ? child : visible(child)));
}

/** A text that may come from anybody: it keeps its direction to itself, and shows control characters as what they are. */
export function told(text) {
  return h("bdi", {}, String(text ?? ""));
}

/** Without characters that are not seen but turn what stands around them. */
export function visible(text) {
  return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (one) => {
    const code = one.codePointAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : "\ufffd";
  });
}
