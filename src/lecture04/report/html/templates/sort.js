// Tables whose headings are buttons: sorts their rows, and says so to those who do not see it.
"use strict";
const sorting = (() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const RANK = ["better", "equivalent", "within", "unconfirmed", "single", "worse", "diverged", "no", "baseline", "start"];

  function keyOf(text) {
    const word = RANK.indexOf(text.split(" ")[0]);
    if (word >= 0) return word;
    if (/^\d{4}-\d\d-\d\d/.test(text)) return text;
    const number = text.startsWith("∞") ? Infinity : parseFloat(text.replace(/[,<]/g, ""));
    return Number.isNaN(number) ? text : number;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0; // infinities are equal
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function say(text) {
    $("#said").textContent = text;
  }

  // The table's rows by the column that is marked as sorted; without one, in their own order.
  function apply(table) {
    const sorted = $("th[aria-sort]", table);
    const rows = $$("tbody tr", table).sort((a, b) => a.dataset.row - b.dataset.row);
    if (sorted) {
      const sign = sorted.getAttribute("aria-sort") === "descending" ? -1 : 1;
      const text = (tr) => ($(".name", tr.cells[sorted.cellIndex]) || tr.cells[sorted.cellIndex]).textContent.trim();
      const keys = new Map(rows.map((tr) => [tr, sorted.cellIndex ? keyOf(text(tr)) : text(tr)]));
      rows.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        return (x === "") - (y === "") || sign * compare(x, y); // what is not there comes last, either way
      });
    }
    table.classList.toggle("sorted", Boolean(sorted));
    table.tBodies[0].append(...rows);
  }

  // Up, down, and the table's own order again.
  function by(th) {
    const table = th.closest("table");
    const next = { null: "ascending", ascending: "descending", descending: null }[th.getAttribute("aria-sort")];
    $$("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    if (next) th.setAttribute("aria-sort", next);
    apply(table);
    say(next ? `Sorted by ${th.textContent.trim()}, ${next}.` : "In the table's own order.");
    table.dispatchEvent(new Event("sorted"));
  }

  for (const button of $$("button.sort")) button.addEventListener("click", () => by(button.closest("th")));
  return { apply, say };
})();
