"use strict";
const pages = [...document.querySelectorAll("section")];
let here = 0;
let marked = [];

function show(index) {
  if (pages.length === 0) return;
  here = Math.max(0, Math.min(pages.length - 1, index));
  pages.forEach((page, at) => page.classList.toggle("here", at === here));
  document.getElementById("place").textContent =
    `page ${pages[here].dataset.page} (${here + 1} of ${pages.length})`;
  document.getElementById("previous").disabled = here === 0;
  document.getElementById("next").disabled = here === pages.length - 1;
  history.replaceState(null, "", `#${pages[here].id}`);
  window.scrollTo(0, 0);
}

function mark(id) {
  marked.forEach((element) => element.classList.remove("on"));
  marked = id === undefined ? [] :
    [...pages[here].querySelectorAll("[data-element]")].filter((element) => element.dataset.element === id);
  marked.forEach((element) => element.classList.add("on"));
}

function named(event) {
  const element = event.target.closest && event.target.closest("[data-element]");
  return element ? element.dataset.element : undefined;
}

function article(id) {
  return [...pages[here].querySelectorAll("article")].find((element) => element.dataset.element === id);
}

function step(by) {
  const all = [...pages[here].querySelectorAll("article")];
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  if (next) {
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }
}

document.addEventListener("mouseover", (event) => mark(named(event)));
document.addEventListener("focusin", (event) => mark(named(event)));
document.addEventListener("click", (event) => {
  const box = event.target.closest("g.box");
  const target = box && article(box.dataset.element);
  if (target) {
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "center" });
  }
});
document.getElementById("previous").addEventListener("click", () => show(here - 1));
document.getElementById("next").addEventListener("click", () => show(here + 1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const keys = {
    ArrowLeft: () => show(here - 1), PageUp: () => show(here - 1), k: () => show(here - 1),
    ArrowRight: () => show(here + 1), PageDown: () => show(here + 1), j: () => show(here + 1),
    Home: () => show(0), End: () => show(pages.length - 1),
    ArrowDown: () => step(1), ArrowUp: () => step(-1),
  };
  if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key]();
  }
});
function fromAddress() {
  const at = pages.findIndex((page) => `#${page.id}` === location.hash);
  show(at < 0 ? 0 : at);
}
window.addEventListener("hashchange", fromAddress);
document.documentElement.classList.add("js");
fromAddress();
