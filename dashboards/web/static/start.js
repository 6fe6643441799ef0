// Starts a page: its colours, its links, its script.

import { keepLinks } from "./address.js";
import { fill, h, visible } from "./dom.js";
import { redraw } from "./plots.js";

const { page, root, base, api, live, write } = document.body.dataset;
const NAMES = { auto: "as the system has them", light: "light", dark: "dark" };

function themeButton() {
  const button = document.getElementById("theme");
  const tell = () => button.setAttribute("aria-label", `Colours: ${NAMES[document.documentElement.dataset.theme]}. Change`);
  button.addEventListener("click", () => {
    const order = ["auto", "light", "dark"];
    const next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % order.length];
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("deltaspace-theme", next);
    } catch {
      // storage is disabled
    }
    tell();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  tell();
}

/** How fresh the page is, beside the name of the study. */
function say(kind, text) {
  const standing = document.getElementById("standing");
  const titles = { live: "live", waiting: "waiting", unreadable: "unreadable", exported: "exported" };
  standing.dataset.kind = kind;
  standing.title = visible(text);
  fill(standing, h("span", { "aria-hidden": "true" }, "● "), titles[kind]);
}

export function problem(error) {
  const place = document.getElementById("page");
  const box = h("p", { class: "problem", role: "alert" }, visible(error.message));
  place.querySelector(".problem")?.remove();
  place.querySelector(".quiet") && place.children.length === 1 ? fill(place, box) : place.prepend(box);
}

themeButton();
keepLinks();
const current = document.querySelector("nav [aria-current]");
if (current) current.parentNode.scrollLeft = current.offsetLeft - (current.parentNode.clientWidth - current.offsetWidth) / 2;
try {
  const { show } = await import(`./pages/${page}.js`);
  await show({ place: document.getElementById("page"), root, base, api, isLive: live === "yes", mayWrite: write === "yes", say, problem });
} catch (error) {
  problem(error);
}
document.body.dataset.ready = "yes";
