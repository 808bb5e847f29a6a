"use strict";
// The page of `harness serve`. It shows what the server reads from the folder of an exercise, and starts jobs there.
(() => {
  const POLL = 600; // milliseconds between two questions about a running job
  const RATIO = 30; // a curve whose values differ by a larger factor gets a log axis
  const $ = (id) => document.getElementById(id);
  const source = $("source");
  let name = null; // the exercise on the page, or null while the queue is shown
  let shown = null; // the state of the exercise as the server sent it
  let job = null; // the running job or the last one
  let loaded = { text: "", seen: "" }; // the experiment as it was loaded from the disk
  let leaving = false; // after Escape, the next Tab leaves the editor
  let curves = {};
  let timer = null;

  // --- requests

  async function ask(path, given) {
    const options = given === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given),
    };
    let answer;
    try {
      answer = await fetch(path, { ...options, credentials: "same-origin" });
    } catch {
      throw new Error("The server does not answer: start harness serve again, and open the address that it prints.");
    }
    const text = await answer.text();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      throw new Error(text);
    }
    if (!answer.ok) throw new Error(value?.error ?? "There is no such page: go back to the queue.");
    return value;
  }

  const about = (part = "") => `/case/${encodeURIComponent(name)}${part && `/${part}`}`;

  function fail(error) {
    const text = error ? error.message : "";
    $("failure").hidden = !text;
    if ($("failure").textContent !== text) $("failure").textContent = text;
  }

  // Run an action of a button, and show its error.
  const guarded = (action) => async (event) => {
    try {
      fail(null);
      await action(event);
    } catch (error) {
      fail(error);
    }
  };

  // --- parts of the page

  function element(parent, tag, className = "", text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.textContent = text;
    parent?.append(made);
    return made;
  }

  function table(host, caption, columns, rows, { numbers = [], cell = null } = {}) {
    host.replaceChildren();
    const panel = element(host, "div", "panel scroll");
    panel.tabIndex = 0;
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", caption);
    const made = element(panel, "table", "facts");
    element(made, "caption", "", caption);
    const head = element(element(made, "thead"), "tr");
    columns.forEach((text, index) => {
      element(head, "th", numbers.includes(index) ? "number" : "", text).scope = "col";
    });
    const body = element(made, "tbody");
    for (const row of rows) {
      const line = element(body, "tr");
      row.forEach((text, index) => {
        const one = element(line, index ? "td" : "th", numbers.includes(index) ? "number" : "");
        if (!index) one.scope = "row";
        if (cell) cell(one, text, index);
        else one.textContent = text;
      });
    }
  }

  // Add a link that opens another page in a new tab.
  function addLink(host, address, text) {
    const link = element(host, "a", "", text);
    link.href = address;
    link.target = "_blank";
    link.rel = "noopener";
    host.append(" ");
  }

  function diff(host, lines) {
    host.replaceChildren();
    for (const line of lines) {
      element(host, "span", { "+": "added", "-": "removed" }[line[0]] ?? "", `${line}\n`);
    }
  }

  // Show HTML that the server made from Markdown. The policy of the page lets no script in it run.
  function showHtml(host, html) {
    const made = document.createElement("template");
    made.innerHTML = html;
    host.replaceChildren(made.content);
  }

  // --- the queue

  async function showQueue(level) {
    const found = await ask(`/queue/${level}`);
    heading("Practice", found.levels ? "Find the fault in a training run, fix it, and prove it." : "The exercises of your course.");
    $("to-queue").href = `#level/${found.level}`;
    $("levels").hidden = !found.levels;
    $("level-choices").replaceChildren();
    for (let number = 1; number <= found.levels; number++) {
      const label = element($("level-choices"), "label");
      const choice = element(label, "input");
      choice.type = "radio";
      choice.name = "level";
      choice.checked = number === found.level;
      choice.addEventListener("change", () => { location.hash = `#level/${number}`; });
      label.append(`Level ${number}`);
    }
    $("queue-about").textContent = found.levels
      ? `The names of cases do not tell the fault, and a case may have no fault at all. You solved ${found.solved} of ${found.needed} cases of this level.`
      : "";
    $("certificates").replaceChildren();
    for (const level of found.certificates) addLink($("certificates"), `/certificate/${level}`, `Your certificate of level ${level}`);
    $("queue-items").replaceChildren();
    const parts = [[found.levels ? `Level ${found.level}` : "Exercises", found.items], ["Also begun", found.others]];
    for (const [caption, items] of parts) {
      if (!items.length) continue;
      const rows = items.map((one) => [one.name, one.title, stateOf(one), one.hints ? String(one.hints) : ""]);
      table(element($("queue-items"), "div"), caption, ["Exercise", "Title", "State", "Hints"], rows, {
        numbers: [3],
        cell: (host, text, index) => {
          if (index) host.textContent = text;
          else element(host, "a", "", text).href = `#case/${encodeURIComponent(text)}`;
        },
      });
    }
  }

  function stateOf(one) {
    return one.revealed ? `${one.state}, solution seen` : one.state;
  }

  // --- an exercise

  function heading(text, more) {
    $("heading").textContent = text;
    $("about").textContent = more;
    document.title = text;
  }

  async function showCase() {
    show(await ask(about()));
    curves = shown.begun ? await ask(about("curves")) : {};
    drawCharts();
  }

  function show(found) {
    const before = shown;
    shown = found;
    heading(found.name, found.title);
    if (!before) showHtml($("prompt-text"), found.prompt);
    $("desk").classList.toggle("fresh", !found.begun);
    $("start").hidden = found.begun && !found.experiment.problem;
    $("start").textContent = found.begun ? "Put the missing files back" : "Run the broken experiment";
    showJob();
    if (!found.begun) return;
    showExperiment(found.experiment);
    diff($("edit"), found.edit.length ? found.edit : ["You have not edited experiment.py yet."]);
    showResult(found);
    showTriage(found);
    showHints(found.hints);
    showHistory(found.history);
    showSolution(found);
  }

  function showExperiment(file) {
    $("failure").hidden = $("failure").hidden && !file.problem;
    if (file.problem) $("failure").textContent = file.problem;
    if (file.seen === loaded.seen) return;
    if (isTyped()) {
      conflict(`${shown.name}/experiment.py has changed on the disk since you loaded it.`);
      return;
    }
    load(file);
  }

  function load(file) {
    loaded = { text: file.text, seen: file.seen };
    $("conflict").hidden = true;
    if (source.value !== file.text) source.value = file.text;
    numberLines();
    $("saved").textContent = "";
  }

  function showResult(found) {
    const old = found.last && !found.current ? " This was an older text of your experiment." : "";
    $("verdict-text").textContent = found.verdict ? `Attempt ${found.last}: ${found.verdict}${old}` : found.solved ? "" : found.goal_says;
    $("verdict-text").className = found.fixed ? "lead good" : "lead";
    $("claim").hidden = !found.claimable;
    $("claim-says").textContent = found.says ?? (found.solved ? `Solved: ${found.solved}` : "");
    $("after").hidden = $("after-explanation").hidden = !found.explanation.length || !found.solved;
    $("criteria").replaceChildren();
    const criteria = found.criteria.length ? found.criteria : found.verdict ? [] : found.goal.map((says) => ({ says }));
    for (const { says, found: value, reached } of criteria) {
      const judged = reached !== undefined;
      const line = element($("criteria"), "li", judged ? (reached ? "good" : "bad") : "");
      if (judged) {
        const mark = element(line, "span", "", reached ? "✓" : "✗");
        mark.setAttribute("role", "img");
        mark.setAttribute("aria-label", reached ? "reached" : "not reached");
      }
      line.append(judged ? ` ${says}: ${value}` : `• ${says}`);
    }
    const { columns, rows } = found.metrics;
    table($("metrics"), "Metrics of the runs", ["Metric", ...columns], rows, { numbers: [1, 2] });
    $("run-pages").replaceChildren();
    for (const run of found.pages) {
      addLink($("run-pages"), about(`run/${run}`), run === "broken" ? "All charts of the broken run" : "All charts of both runs");
    }
  }

  function showTriage({ triage, checks }) {
    $("check-label").hidden = $("triage").hidden = !checks.length;
    if (checks.length && $("check").options.length !== checks.length + 1) {
      $("check").replaceChildren();
      element($("check"), "option", "", "triage: nearly all checks").value = "";
      for (const one of checks) {
        const option = element($("check"), "option", "", one.name);
        option.value = one.name;
        option.title = one.question;
      }
    }
    $("triage-section").hidden = !triage;
    if (!triage) return;
    $("triage-old").textContent = triage.current ? "" : "Your experiment has changed since these checks.";
    $("triage-screen").replaceChildren();
    for (const [text, tone] of triage.screen) element($("triage-screen"), "p", `lines ${tone}`, text || "\u00a0");
    $("triage-checks").replaceChildren();
    $("measured").hidden = !triage.checks.length;
    for (const one of triage.checks) {
      const part = element($("triage-checks"), "details");
      const summary = element(part, "summary");
      const state = one.sound && !one.judged ? "had nothing to judge" : { true: "found nothing wrong", false: "finds something wrong" }[one.sound];
      element(summary, "b", one.sound === false ? "bad" : "", one.title);
      summary.append(` ${one.question}${state ? ` (${state})` : ""}`);
      element(part, "pre", "edit", one.lines.join("\n"));
    }
  }

  function showHints({ offered, open, most, leads_to: leads, given }) {
    $("hints-section").hidden = !offered || (!open && !given.length);
    $("hints-about").hidden = !open;
    const list = $("hints");
    if (list.children.length > given.length) list.replaceChildren();
    given.slice(list.children.length).forEach((html) => showHtml(element(list, "li", "prose"), html));
    $("hint").hidden = !open || given.length === most;
    if (given.length < most) $("hint").textContent = `Hint ${given.length + 1} of ${most}: ${leads[given.length]}`;
  }

  function showHistory({ columns, attempts, claims }) {
    const rows = [...attempts.map((one) => one.cells), ...claims];
    $("history-section").hidden = !rows.length;
    const key = JSON.stringify(rows);
    if ($("edits").dataset.shown === key) return; // so that an open edit stays open
    $("edits").dataset.shown = key;
    table($("history"), "Your attempts", columns, rows, { numbers: [2, 3, 4] });
    $("edits").replaceChildren();
    for (const one of [...attempts].reverse()) {
      const part = element($("edits"), "details", "panel");
      element(part, "summary", "", `Edit of attempt ${one.number}`);
      diff(element(part, "pre", "edit"), one.edit.length ? one.edit : ["This attempt has no edit."]);
    }
  }

  function showSolution({ explanation, explained }) {
    const host = $("solution"), key = JSON.stringify(explanation);
    $("solution-section").hidden = !explained;
    $("reveal").hidden = Boolean(explanation.length);
    if (host.dataset.shown === key) return;
    host.dataset.shown = key;
    host.replaceChildren();
    for (const { heading, minor, html, edit } of explanation) {
      if (heading) element(host, minor ? "h4" : "h3", "", heading);
      if (html) showHtml(element(host, "div", "prose"), html);
      if (edit.length) diff(element(host, "pre", "edit panel"), edit);
    }
  }

  // --- the editor

  const isTyped = () => source.value !== loaded.text;

  function numberLines() {
    const count = source.value.split("\n").length;
    if ($("lines").childElementCount || $("lines").dataset.count !== String(count)) {
      $("lines").textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
      $("lines").dataset.count = String(count);
    }
    $("lines").scrollTop = source.scrollTop;
  }

  // Replace the selection, so that the browser's own undo still works.
  function insert(text) {
    if (!document.execCommand("insertText", false, text)) source.setRangeText(text, source.selectionStart, source.selectionEnd, "end");
    numberLines();
  }

  function indent(back) {
    const { value, selectionStart: start, selectionEnd: end } = source;
    if (!back && start === end) return insert("    ");
    const from = value.lastIndexOf("\n", start - 1) + 1;
    const lines = value.slice(from, end).split("\n");
    const changed = lines.map((line) => (back ? line.replace(/^( {1,4}|\t)/, "") : line && `    ${line}`)).join("\n");
    source.setSelectionRange(from, end);
    if (changed) insert(changed);
    else source.setRangeText("", from, end, "end");
    if (start === end) {
      const at = Math.max(from, start + changed.length - (end - from));
      source.setSelectionRange(at, at);
    } else source.setSelectionRange(from, from + changed.length);
  }

  source.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === "Escape") leaving = true;
    else if (event.key === "Tab" && plain && !leaving) {
      event.preventDefault();
      indent(event.shiftKey);
    } else if (event.key === "Enter" && plain && !event.isComposing) {
      event.preventDefault();
      const before = source.value.slice(source.value.lastIndexOf("\n", source.selectionStart - 1) + 1, source.selectionStart);
      insert(`\n${before.match(/^[ \t]*/)[0]}${before.trimEnd().endsWith(":") ? "    " : ""}`);
    } else if (event.key !== "Tab" && event.key !== "Shift") leaving = false;
  });
  source.addEventListener("focus", () => { leaving = false; });
  source.addEventListener("input", () => {
    numberLines();
    $("saved").textContent = isTyped() ? "Not saved" : "";
  });
  source.addEventListener("scroll", () => { $("lines").scrollTop = source.scrollTop; });

  function conflict(text) {
    $("conflict-text").textContent = text;
    $("conflict").hidden = false;
  }

  async function save(seen = loaded.seen) {
    const text = source.value;
    let found;
    try {
      found = await ask(about("save"), { text, seen });
    } catch (error) {
      if (!error.message.includes("has changed on the disk")) throw error;
      conflict(error.message);
      return false;
    }
    loaded = { text, seen: found.experiment.seen };
    $("conflict").hidden = true;
    show(found);
    $("saved").textContent = isTyped() ? "Not saved" : "Saved";
    return true;
  }

  $("save").addEventListener("click", guarded(() => save()));
  $("load").addEventListener("click", guarded(async () => {
    const found = await ask(about());
    load(found.experiment);
    show(found);
    source.focus();
  }));
  $("keep").addEventListener("click", guarded(async () => {
    const found = await ask(about());
    if (await save(found.experiment.seen)) source.focus();
  }));

  // --- jobs

  const isRunning = () => job?.status === "running";
  const NAMES = { exercise: "Broken run", verify: "Verify", triage: "Checks" };

  async function start(verb, given = {}) {
    ({ job } = await ask(about(verb), given));
    showJob();
    follow();
  }

  function follow() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        const number = job?.number;
        ({ job } = await ask("/job"));
        showJob();
        if (name && job?.name === name && job.verb !== "triage" && job.progress.step) {
          curves = await ask(about("curves"));
          drawCharts();
        }
        if (isRunning()) follow();
        else if (number && name) await showCase();
      } catch (error) {
        fail(error);
      }
    }, POLL);
  }

  function showJob() {
    const running = isRunning(), mine = job?.name === name;
    for (const id of ["start", "continue", "verify", "triage"]) $(id).disabled = running;
    $("continue").hidden = running || !shown?.resumable;
    $("verify").hidden = !shown?.begun;
    if (!shown?.begun) $("check-label").hidden = $("triage").hidden = true;
    $("stop").hidden = !running;
    $("output-panel").hidden = !(mine && job.output.length);
    if (mine) $("output").textContent = job.output.join("\n");
    const { label, step, steps, says } = job?.progress ?? {};
    $("progress").hidden = !running;
    if (running && steps) $("progress").value = step / steps;
    else $("progress").removeAttribute("value");
    let text = "";
    if (running) {
      const detail = label && mine ? `, ${step}${steps ? ` of ${steps}` : ""}, ${says}` : "";
      text = `${NAMES[job.verb]} of ${job.name}: running${detail}`;
    } else if (mine) {
      text = job.says || job.result?.says || `${NAMES[job.verb]}: done.`;
    }
    // Screen readers read the begin and the end of a job, not each step.
    $("job").setAttribute("aria-live", running && $("job").textContent ? "off" : "polite");
    if ($("job").textContent !== text) $("job").textContent = text;
    $("job").className = mine && job?.status === "failed" ? "bad" : "";
  }

  async function verify() {
    if (isTyped() && !(await save())) return;
    await start("verify");
  }

  $("start").addEventListener("click", guarded(() => start("exercise")));
  $("continue").addEventListener("click", guarded(async () => {
    if (isTyped() && !(await save())) return;
    await start(shown.resumable, { resume: true });
  }));
  $("verify").addEventListener("click", guarded(verify));
  $("triage").addEventListener("click", guarded(async () => {
    if (isTyped() && !(await save())) return;
    await start("triage", { check: $("check").value });
  }));
  $("stop").addEventListener("click", guarded(async () => {
    $("stop").disabled = true;
    try {
      ({ job } = await ask("/stop", {}));
    } finally {
      $("stop").disabled = false;
    }
    await showCase();
  }));
  $("claim").addEventListener("click", guarded(async () => show(await ask(about("claim"), {}))));
  $("hint").addEventListener("click", guarded(async () => show(await ask(about("hint"), {}))));
  $("reveal").addEventListener("click", guarded(async () => {
    const found = await ask(about("reveal"), {});
    if (!found.question) return show(found);
    $("question").textContent = found.question;
    $("ask").showModal();
  }));
  $("yes").addEventListener("click", guarded(async () => {
    $("ask").close();
    show(await ask(about("reveal"), { yes: true }));
    $("solution-title").focus();
  }));
  $("explain").addEventListener("click", () => $("solution-title").focus());
  $("no").addEventListener("click", () => $("ask").close());

  document.addEventListener("keydown", (event) => {
    if (!name || !(event.ctrlKey || event.metaKey) || event.altKey || $("ask").open) return;
    if (event.key === "s") {
      event.preventDefault();
      guarded(() => save())();
    } else if (event.key === "Enter" && !$("verify").disabled && shown?.begun) {
      event.preventDefault();
      guarded(verify)();
    }
  });

  // --- charts

  const CHARTS = [
    ["loss", "steps", "Training loss", "step"],
    ["grad_norm", "steps", "Gradient norm", "step"],
    ["val_loss", "epochs", "Validation loss", "epoch"],
    ["val_accuracy", "epochs", "Validation accuracy", "epoch"],
  ];
  const colour = (word) => getComputedStyle(document.documentElement).getPropertyValue(word).trim();
  const finite = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
  // A chart has no room for 0.000001.
  const digits = (value) => value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(3).replace(/\.?0*e/, "e") : String(Number(value.toPrecision(4)));
  const short = (value) => (value === null || value === undefined ? "no value" : typeof value === "number" ? digits(value) : value);
  const course = (raw) => (raw.length > 1 ? `${short(raw[0])} to ${short(raw.at(-1))}` : short(raw[0]));
  const plots = new Map();

  // Return the runs to draw: an unfinished run only while it is running, in place of the finished one.
  function runsToDraw() {
    const live = isRunning() && job.name === name && job.verb !== "triage" && job.progress.label;
    const broken = live && job.verb === "exercise" ? curves["broken.partial"] : curves.broken;
    const fixed = live && job.verb === "verify" ? curves["fixed.partial"] : curves.fixed;
    return [["broken", broken, "--tone-1"], ["your run", fixed, "--tone-0"]].filter(([, run]) => run?.steps);
  }

  function drawCharts() {
    const runs = runsToDraw();
    for (const [signal, part, title, unit] of CHARTS) {
      const lines = runs.map(([label, run, tone]) => ({ label, tone, raw: run[part][signal] }))
        .filter(({ raw }) => raw.some((value) => value !== null));
      if (lines.length) drawChart(signal, title, unit, lines);
      else remove(signal);
    }
    const figures = CHARTS.map(([signal]) => plots.get(signal)?.figure).filter(Boolean);
    $("charts-section").hidden = !figures.length;
    if (figures.some((figure, index) => $("charts").children[index] !== figure)) $("charts").replaceChildren(...figures);
  }

  function remove(signal) {
    plots.get(signal)?.plot?.destroy();
    plots.get(signal)?.figure.remove();
    plots.delete(signal);
  }

  function drawChart(signal, title, unit, lines) {
    const key = JSON.stringify(lines);
    const before = plots.get(signal);
    if (before?.key === key) return;
    const figure = before?.figure ?? element(null, "figure", "chart");
    before?.plot?.destroy();
    figure.replaceChildren();
    if (!figure.isConnected) $("charts").append(figure);
    const caption = element(figure, "figcaption");
    element(caption, "h3", "", title);
    const legend = element(caption, "ul", "legend");
    for (const { label, tone, raw } of lines) {
      const line = element(legend, "li", `t${tone.slice(-1)}`);
      element(line, "i").setAttribute("aria-hidden", "true");
      element(line, "b", "", `${label}: ${course(raw)}`);
    }
    const host = element(figure, "div", "plot-host");
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", `${title} by ${unit}. ${lines.map(({ label, raw }) => (
      `${label}: ${raw.length} values, ${course(raw)}`)).join("; ")}`);
    const values = lines.map(({ raw }) => raw.map(finite));
    const all = values.flat().filter((value) => value !== null);
    if (!all.length) {
      element(host, "p", "soft", "no finite value");
      plots.set(signal, { key, figure, plot: null });
      return;
    }
    const positive = all.every((value) => value > 0);
    const log = positive && Math.max(...all) / Math.min(...all) > RATIO;
    const most = Math.max(...values.map((line) => line.length));
    const xs = Array.from({ length: most }, (_, index) => index);
    const soft = () => colour("--soft"), font = "12px system-ui, sans-serif";
    const isRound = (tick) => !log || Number.isInteger(Number(Math.log10(tick).toFixed(6)));
    const axis = { stroke: soft, font, grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false } };
    const plot = new uPlot({
      width: Math.max(host.clientWidth, 200), height: 170, padding: [8, 8, 0, 0], legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: [0, Math.max(most - 1, 1)] }, y: log ? { distr: 3 } : {} },
      axes: [
        { ...axis, grid: { show: false }, size: 34, label: unit, labelSize: 14, labelFont: font, gap: 2,
          incrs: Array.from({ length: 46 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3)) },
        { ...axis, size: 52, grid: { ...axis.grid, filter: (_, ticks) => ticks.map((tick) => (isRound(tick) ? tick : null)) }, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))) },
      ],
      series: [{}, ...lines.map(({ tone }) => ({
        stroke: () => colour(tone), width: 1.8, points: { show: most < 20, size: 5, fill: () => colour(tone) },
      }))],
    }, [xs, ...values.map((line) => xs.map((index) => line[index] ?? null))], host);
    plots.set(signal, { key, figure, plot });
  }

  // Keep what gets the focus out from under the sticky bar, whose height changes with its text and its width.
  const bar = document.querySelector(".bar");
  new ResizeObserver(() => {
    const sticks = getComputedStyle(bar).position === "sticky";
    document.documentElement.style.scrollPaddingTop = sticks ? `${bar.offsetHeight + 8}px` : "";
  }).observe(bar);

  new ResizeObserver(() => {
    for (const { figure, plot } of plots.values()) {
      const width = figure.querySelector(".plot-host").clientWidth;
      if (plot && width && width !== plot.width) plot.setSize({ width, height: 170 });
    }
  }).observe($("charts"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { plot } of plots.values()) plot?.redraw();
  });

  // --- pages

  function leave() {
    return !name || !isTyped() || confirm("Your edit is not saved. Leave this exercise?");
  }

  let address = location.hash;
  async function route() {
    if (location.hash !== address && !leave()) {
      history.replaceState(null, "", address);
      return;
    }
    address = location.hash;
    const [kind, value] = location.hash.slice(1).split("/").map(decodeURIComponent);
    name = kind === "case" ? value : null;
    shown = null;
    loaded = { text: "", seen: "" };
    source.value = "";
    curves = {};
    [...plots.keys()].forEach(remove);
    for (const id of ["prompt-text", "check", "hints", "history", "edits", "solution", "triage-checks"]) $(id).replaceChildren();
    for (const id of ["edits", "solution"]) delete $(id).dataset.shown;
    $("saved").textContent = "";
    $("conflict").hidden = true;
    $("queue").hidden = name !== null;
    $("pages").hidden = $("case").hidden = name === null;
    ({ job } = await ask("/job"));
    if (isRunning()) follow();
    if (name) {
      $("prompt").open = true;
      $("desk").classList.add("fresh");
      await showCase();
      if (shown.begun && shown.last) $("prompt").open = false;
    } else await showQueue(Number(value) || 0); // 0: the student's level
  }

  const routed = guarded(async () => {
    await route();
    $("heading").focus();
  });
  window.addEventListener("hashchange", routed);
  window.addEventListener("focus", guarded(async () => {
    if (name && shown && !isRunning()) await showCase();
  }));
  window.addEventListener("beforeunload", (event) => {
    if (name && isTyped()) event.preventDefault(); // the browser then asks before it discards the edit
  });
  // The address with the secret is not to stay in the history of the browser.
  history.replaceState(null, "", `/${location.hash}`);
  routed();
})();
