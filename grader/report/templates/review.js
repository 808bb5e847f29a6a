"use strict";
// Keyboard shortcuts for the review. Every shortcut activates a link, a button or a field of the page.
(() => {
  const keys = {
    a: "accept", r: "reject", u: "undo", p: "points", c: "comment", q: "queue",
    j: "next", k: "previous", ArrowRight: "next", ArrowLeft: "previous",
  };
  const form = document.getElementById("decide");
  let typed = false;
  let sent = false;

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea")) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(document.getElementById("save"));
      return;
    }
    // If a key is held down, its repeated events must not also decide the next item. Inside a scrolling region, the arrow
    // keys must still scroll.
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow") && event.target !== document.body) return;
    const target = document.getElementById(keys[event.key] || keys[event.key.toLowerCase()]);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input, textarea")) target.focus();
    else target.click();
  });
  document.addEventListener("input", () => { typed = true; });
  document.addEventListener("submit", (event) => {
    if (sent) event.preventDefault(); // the button was pressed twice
    sent = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (typed && !sent) event.preventDefault(); // the browser then asks before it discards the typed text
  });
  window.addEventListener("pageshow", () => { sent = false; });
})();
