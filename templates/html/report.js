"use strict";
/* Everything here is a convenience: the page says all without it. */

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function make(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/* Tables: rows travel with their cards. */

const pairs = (body) => [...body.rows].filter((row) => !row.classList.contains("card")).map((row) => {
  const next = row.nextElementSibling;
  return { row, card: next && next.classList.contains("card") ? next : null };
});

function value(row, column) {
  const cell = row.cells[column];
  if (!cell || cell.classList.contains("na")) return null;
  const text = (cell.classList.contains("n") && cell.title) || cell.textContent.trim();
  const number = parseFloat(text.replaceAll(",", ""));
  return cell.classList.contains("n") && !Number.isNaN(number) ? number : text;
}

function compare(left, right) {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}

function sort(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const numeric = heading.classList.contains("n");
  const before = heading.getAttribute("aria-sort");
  const ascending = before ? before === "descending" : !numeric;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = table.tBodies[0];
  const open = body.querySelectorAll(":scope > tr:not(.card):not(.rest)").length;
  const rows = pairs(body).map((pair) => ({ ...pair, key: value(pair.row, column) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return ascending ? compare(a.key, b.key) : compare(b.key, a.key);
  });
  rows.forEach(({ row, card }, index) => {
    row.classList.toggle("rest", index >= open);
    body.append(row, ...(card ? [card] : []));
  });
}

function filter(table, words, status) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = pairs(table.tBodies[0]);
  let found = 0;
  for (const { row, card } of rows) {
    const hit = wanted.every((word) => row.textContent.toLowerCase().includes(word));
    row.classList.toggle("found", hit && wanted.length > 0);
    row.classList.toggle("out", !hit);
    if (card) card.classList.toggle("out", !hit);
    found += hit;
  }
  status.textContent = wanted.length ? `${found} of ${rows.length} rows` : "";
}

function equip(table) {
  const rows = pairs(table.tBodies[0]).length;
  const box = table.closest(".table");
  if (!box || table.closest("tr.card") || rows < 2) return;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = make("button", { type: "button", title: heading.title }, ...heading.childNodes);
    button.addEventListener("click", () => sort(table, column));
    heading.append(button);
  });
  if (rows <= 10) return;
  const status = make("span", { className: "muted", role: "status" });
  const input = make("input", { type: "search", placeholder: "Filter rows" });
  input.setAttribute("aria-label", `Filter rows: ${table.caption.textContent}`);
  input.addEventListener("input", () => filter(table, input.value, status));
  table.closest(".scroll").before(make("div", { className: "tools" }, input, status));
}

/* Cards, and links between charts and rows: pointing lights both, a click on a row keeps them lit. */

const marks = new Map();
const pinned = new Set();

function pin(row) {
  if (!row || !marks.has(row.id)) return;
  if (!pinned.delete(row.id)) pinned.add(row.id);
  light(row.id, pinned.has(row.id));
}

function light(id, on) {
  if (!on && pinned.has(id)) return;
  for (const mark of marks.get(id) || []) mark.classList.toggle("on", on);
  const row = document.getElementById(id);
  if (row) row.classList.toggle("on", on);
}

function reveal(target) {
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  const row = target.closest("tr");
  const body = row && row.closest(".table");
  const owner = row && row.classList.contains("card") ? row.previousElementSibling : row;
  const box = body && body.querySelector(":scope > .rows");
  if (box && owner && owner.classList.contains("rest")) box.checked = true;
}

function toggle(link, card) {
  const open = !card.classList.contains("open");
  if (open && matchMedia("(max-width: 40rem)").matches) all("tr.card.open").forEach((other) => show(other, false));
  show(card, open, link);
}

function show(card, open) {
  card.classList.toggle("open", open);
  const link = document.querySelector(`a[href="#${CSS.escape(card.id)}"][aria-expanded]`);
  if (link) link.setAttribute("aria-expanded", String(open));
}

function connect() {
  for (const mark of all(".chart a[data-row]")) {
    const id = mark.dataset.row;
    marks.set(id, [...(marks.get(id) || []), mark]);
  }
  for (const link of all('td > a[href^="#card-"]')) link.setAttribute("aria-expanded", "false");
  for (const [start, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(start, (event) => point(event.target, true));
    document.addEventListener(end, (event) => point(event.target, false));
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) {
      if (!event.target.closest("summary, button, label, input")) pin(event.target.closest("tr[id]:not(.card)"));
      return;
    }
    const target = document.getElementById(link.getAttribute("href").slice(1));
    if (target && target.matches("tr.card") && link.closest("td")) {
      event.preventDefault();
      toggle(link, target);
    } else if (target) reveal(target);
  });
}

function point(target, on) {
  const mark = target.closest && target.closest("[data-row]");
  const row = target.closest && target.closest("tr[id]");
  if (mark) light(mark.dataset.row, on);
  else if (row && marks.has(row.id)) light(row.id, on);
}

/* One tab stop a chart; arrow keys go from mark to mark. */

function rove(chart) {
  const links = all("a[data-row]", chart);
  if (!links.length) return;
  links[0].setAttribute("tabindex", "0");
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = links.indexOf(document.activeElement);
    const next = links[at + step];
    if (!step || at < 0 || !next) return;
    event.preventDefault();
    links[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

/* Print: everything open, and back. */

let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not([open])");
  closed.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));

/* Contents: where the reader is. */

function follow() {
  const links = new Map(all("#contents li a").map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id);
      if (!link) continue;
      if (isIntersecting) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-10% 0px -70% 0px" });
  all("section.part").forEach((section) => watcher.observe(section));
  all("#contents a").forEach((link) => link.addEventListener("click", () => {
    document.getElementById("contents-switch").checked = false;
  }));
}

all(".table table").forEach(equip);
connect();
all(".chart").forEach(rove);
follow();
if (location.hash) {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) reveal(target);
}
