"use strict";
// Sorts and filters the table of submissions. Without this script, the page still works, but has no filter and no sorting.
(() => {
  const table = document.getElementById("class");
  const body = table.tBodies[0];
  const headers = Array.from(table.tHead.rows[0].cells);
  const shown = document.getElementById("shown");
  const more = document.getElementById("more");
  const controls = ["text", "recipe", "status", "flagged"].map((id) => document.getElementById(id));
  const [text, recipe, status, flagged] = controls;
  const compare = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
  const fold = (words) => words.normalize("NFKC").toLowerCase();
  // A browser needs a second to lay out thousands of rows, so show only the first rows until the reader asks for all rows.
  const first = 50;
  let limit = first;
  let order = "";
  let records = Array.from(body.rows).map((row, index) => {
    const cells = Array.from(row.cells).map((cell) => cell.textContent);
    return { row, index, cells, words: fold(cells.join(" ")) };
  });

  function filter() {
    const wanted = fold(text.value).split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, cells, words } of records) {
      const fits = wanted.every((word) => words.includes(word))
        && (!recipe.value || cells[1] === recipe.value)
        && (!status.value || cells[2] === status.value)
        && (!flagged.checked || cells[cells.length - 1] !== "");
      row.hidden = !fits;
      row.classList.toggle("later", fits && count >= limit);
      count += fits;
    }
    const cut = count > limit ? `, the first ${limit} shown` : "";
    shown.textContent = `${count} of ${records.length} submissions${cut}${order}`;
    more.hidden = !cut;
    more.textContent = `Show all ${count}`;
  }

  // Rows without a number stay at the end, whether the order is ascending or descending. Equal rows keep their order.
  function sort(header, column) {
    const numeric = header.classList.contains("number");
    const before = header.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : numeric;
    const sign = descending ? -1 : 1;
    for (const record of records) {
      record.key = numeric ? parseFloat(record.cells[column]) : record.cells[column];
      record.missing = numeric ? Number.isNaN(record.key) : record.key === "";
    }
    records.sort((a, b) => a.missing - b.missing
      || (a.missing ? 0 : sign * (numeric ? a.key - b.key : compare(a.key, b.key)))
      || a.index - b.index);
    for (const other of headers) other.removeAttribute("aria-sort");
    const direction = descending ? "descending" : "ascending";
    header.setAttribute("aria-sort", direction);
    order = `, sorted by ${header.textContent.toLowerCase()}, ${direction}`;
    limit = first;
    filter();
    body.replaceChildren(...records.map(({ row }) => row));
  }

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sort(header, column));
    header.replaceChildren(button);
  });
  for (const control of controls) {
    control.addEventListener(control === text ? "input" : "change", () => { limit = first; filter(); });
  }
  more.addEventListener("click", () => {
    const next = records.find(({ row }) => row.classList.contains("later"));
    limit = Infinity;
    filter();
    next.row.querySelector("a").focus(); // the button disappears, so move the focus to the first new row
  });
  document.getElementById("controls").hidden = false;
  filter();
  window.addEventListener("pageshow", filter); // after a click on Back, the browser restores the typed text, but not the hidden rows
})();
