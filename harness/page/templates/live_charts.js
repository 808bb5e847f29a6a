"use strict";
// Draws an interactive version of each chart: it can zoom, shows values under the mouse, has a linear and a log axis, and
// copies a value as evidence at a click. The static picture remains for printing and for screen readers.
(() => {
  const page = JSON.parse(document.getElementById("charts").textContent);
  const HUGE = 1e300, TINY = 1e-290; // with larger or smaller values, the ends of an axis could overflow
  const NEAR = 30; // the mouse picks a point within this many pixels
  const STEADY = 5; // the mouse may move by this number of pixels during a click
  const FEW = 40; // a line with more points is drawn without dots

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const tone = (number) => colour(`--tone-${number}`);
  const clamped = (value) => Math.min(Math.max(value, -HUGE), HUGE);

  function element(parent, tag, className, text = "") {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    parent.append(made);
    return made;
  }

  // --- axes, with the same ticks as in the static picture (harness.page.charts)

  function numberText(value, digits = 6) {
    const size = Math.abs(value);
    const short = size !== 0 && (size < 1e-4 || size >= 10 ** Math.max(digits, 6));
    if (!short) return String(Number(value.toPrecision(digits)));
    return value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  }

  function linearAxis(low, high) {
    if (high - low <= Math.max(1e-9 * Math.max(Math.abs(low), Math.abs(high)), TINY)) {
      const margin = Math.abs(high) > TINY ? Math.abs(high) / 2 : 1;
      [low, high] = [low - margin, high + margin];
    }
    const rough = (high - low) / 4.5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((n) => n * power >= rough * (1 - 1e-9));
    const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
    const digits = Math.min(17, Math.max(6, ...[first, last].map((n) => String(Math.abs(n)).length + 1)));
    const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
    return { low: first * step, high: last * step, ticks, labels: ticks.map((tick) => numberText(tick, digits)) };
  }

  // Return an axis over base-10 logarithms. `zero` is the label at its low end, for values that have no logarithm.
  function logAxis(smallest, largest, zero) {
    let low = Math.log10(smallest), high = Math.log10(largest);
    const margin = Math.max(0.04 * (high - low), 0.2);
    [low, high] = [low - margin, high + margin];
    const mantissas = high - low > 2.2 ? [1] : high - low > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7];
    const stride = Math.max(1, Math.ceil((high - low) / 6));
    const ticks = [], labels = [];
    for (let power = Math.floor(low); power <= high; power++) {
      for (const mantissa of power % stride ? [] : mantissas) {
        const at = Math.log10(mantissa) + power;
        if (at >= low && at <= high) {
          ticks.push(at);
          labels.push(power > -4 && power < 4 ? numberText(mantissa * 10 ** power) : `${mantissa}e${power}`);
        }
      }
    }
    if (zero) {
      low -= 0.1 * (high - low);
      ticks.unshift(low);
      labels.unshift(zero);
    }
    return { low, high, ticks, labels };
  }

  // --- copy a value

  const note = element(document.body, "div", "copied");
  note.hidden = true;
  const said = element(note, "span", "");
  said.setAttribute("role", "status");
  const field = element(note, "input", "value");
  field.readOnly = true;
  field.setAttribute("aria-label", "A line of evidence for report.md");
  let hiding;

  async function copy(line) {
    const before = document.activeElement;
    note.hidden = false;
    field.value = line;
    let copied = true;
    try {
      await navigator.clipboard.writeText(line);
    } catch { // the browser gives this page no access to the clipboard
      field.focus();
      field.select();
      copied = document.execCommand("copy");
    }
    if (copied && document.activeElement === field) before.focus();
    note.hidden = false;
    said.textContent = copied ? "Copied: " : "Press Ctrl-C to copy: ";
    clearTimeout(hiding);
    if (copied) hiding = setTimeout(() => { note.hidden = true; }, 8000);
  }
  field.addEventListener("blur", () => { note.hidden = true; });

  // --- the charts

  function makeLive(figure, chart) {
    const picture = figure.querySelector(".plot");
    const xs = chart.x.flatMap(([first, count]) => Array.from({ length: count }, (_, index) => first + index));
    const texts = chart.lines.map((line) => line.values.split(" "));
    const values = texts.map((words) => words.map((word) => (
      word === "" || !Number.isFinite(Number(word)) ? null : clamped(Number(word))
    )));
    const [least, smallest, greatest] = chart.extent ?? [0, null, 1];
    const zero = least > 0 ? "" : least < 0 ? "≤ 0" : "0";
    const floor = smallest === null ? 0 : logAxis(smallest, greatest, zero).low; // where a log axis shows zero
    const layers = chart.lines.map((_, line) => line).sort((a, b) => chart.lines[a].layer - chart.lines[b].layer);

    const live = element(figure, "div", "live");
    const tools = element(live, "div", "tools");
    element(tools, "span", "soft", chart.y);
    const host = element(live, "div", "host");
    host.tabIndex = 0;
    host.setAttribute("role", "application");
    host.setAttribute("aria-label", `${figure.querySelector("h3").textContent}: the left and right arrow keys choose a ${chart.kind}, `
      + "the up and down arrow keys choose a line, Enter copies its value as evidence, Escape ends a zoom");
    const tip = element(live, "div", "tip");
    tip.setAttribute("aria-live", "polite");
    let log = chart.log, plot, axis, drawn, picked, copied;

    // Return [minimum, smallest positive value, maximum] of the visible values. Without zoom, use the static picture's.
    function extentOf([first, last]) {
      const whole = [least, smallest, greatest];
      if (first === 0 && last === xs.length - 1) return whole;
      let [low, positive, high] = [Infinity, Infinity, -Infinity];
      for (const line of values) {
        for (const value of line.slice(first, last + 1)) {
          if (value === null) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
          if (value > 0) positive = Math.min(positive, value);
        }
      }
      return low > high || (log && high <= 0) ? whole : [low, positive, high];
    }

    function rangeOfY(u) {
      const [low, positive, high] = extentOf(u.series[0].idxs);
      axis = log ? logAxis(positive, high, low > 0 ? "" : zero) : linearAxis(clamped(low), clamped(high));
      if (log && low <= 0) axis.low = axis.ticks[0] = floor;
      return [axis.low, axis.high];
    }

    const onAxis = (value) => (value === null || !log ? value : value > 0 ? Math.log10(value) : floor);
    const heightOf = (line, index) => drawn[line][index] === null ? 0 : plot.valToPos(drawn[line][index], "y");

    function isFew(u) {
      const [first, last] = u.series[0].idxs;
      return last - first < FEW;
    }

    // Return the points between two gaps, which need a dot because no line leads to them.
    function alone(u, number, show) {
      if (show) return null;
      const line = u.data[number];
      const found = line.map((_, index) => index).filter((index) => (
        line[index] !== null && (line[index - 1] ?? null) === null && (line[index + 1] ?? null) === null
      ));
      return found.length ? found : null;
    }

    function drawMarks(u) {
      const { ctx, bbox } = u;
      const ratio = devicePixelRatio;
      ctx.save();
      ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
      ctx.lineJoin = "round";
      chart.marks.forEach(([x, label, number], index) => {
        const at = u.valToPos(x, "x", true);
        if (at < bbox.left || at > bbox.left + bbox.width) return;
        const before = at > bbox.left + bbox.width / 2;
        const [left, top] = [at + (before ? -6 : 6) * ratio, bbox.top + (12 + 15 * (index % 5)) * ratio];
        ctx.strokeStyle = ctx.fillStyle = tone(number);
        ctx.lineWidth = 1.6 * ratio;
        ctx.setLineDash([2 * ratio, 2 * ratio]);
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.textAlign = before ? "right" : "left";
        ctx.strokeStyle = colour("--card");
        ctx.lineWidth = 4 * ratio;
        ctx.strokeText(label, left, top);
        ctx.fillText(label, left, top);
      });
      if (!chart.extent) {
        ctx.fillStyle = colour("--soft");
        ctx.textAlign = "center";
        ctx.fillText("no finite value", bbox.left + bbox.width / 2, bbox.top + bbox.height / 2);
      }
      ctx.restore();
    }

    // --- select a point: the mouse selects the nearest point, and the keyboard can select any point

    // Return the points near the mouse. A value that is not finite counts as a point at the upper edge.
    function nearest() {
      const { idx, left, top } = plot.cursor;
      if (idx === null || idx === undefined || left < 0) return [];
      const across = plot.valToPos(xs[idx], "x") - left;
      return chart.lines.map((_, line) => ({ line, far: Math.hypot(across, heightOf(line, idx) - top) }))
        .filter(({ line }) => texts[line][idx] !== "").sort((a, b) => a.far - b.far);
    }

    function pick(index, line) {
      picked = index === null ? null : { index, line };
      tip.hidden = picked === null;
      if (tip.hidden) return;
      tip.replaceChildren();
      element(tip, "div", "soft", `${chart.kind} ${xs[index]}`);
      chart.lines.forEach((one, number) => {
        if (texts[number][index] === "") return;
        const row = element(tip, "div", number === line ? "picked" : "");
        element(row, "i", `t${one.tone}`);
        element(row, "span", "", one.label);
        element(row, "b", "value", texts[number][index]);
      });
      const { left, top } = plot.over.getBoundingClientRect(), around = live.getBoundingClientRect();
      const at = left - around.left + plot.valToPos(xs[index], "x");
      const fits = at + 12 + tip.offsetWidth <= live.clientWidth;
      tip.style.left = `${fits ? at + 12 : Math.max(0, at - 12 - tip.offsetWidth)}px`;
      tip.style.top = `${top - around.top + 4}px`;
    }

    function follow() {
      const [first] = nearest();
      const near = first && first.far <= NEAR;
      pick(first ? plot.cursor.idx : null, near ? first.line : null);
      plot.over.style.cursor = near && chart.lines[first.line].signal ? "pointer" : "";
    }

    function cite() {
      const line = chart.lines[picked?.line];
      const value = line && texts[picked.line][picked.index];
      if (!line?.signal || value === "") return;
      copied = picked;
      const words = { run: line.run, signal: line.signal, kind: chart.kind, place: xs[picked.index], value };
      copy(page.evidence.replace(/%(\w+)%/g, (_, name) => words[name]));
    }

    // Select and copy a point. If several lines have the same point, each further click selects the next line.
    function click() {
      const found = nearest().filter(({ far }, _, [first]) => first.far <= NEAR && far <= first.far + 2);
      if (!found.length) return;
      const last = copied?.index === plot.cursor.idx ? found.findIndex(({ line }) => line === copied.line) : -1;
      pick(plot.cursor.idx, found[(last + 1) % found.length].line);
      cite();
    }

    function step(across, down) {
      const lines = chart.lines.length;
      const [first, last] = plot.series[0].idxs;
      const index = Math.min(Math.max((picked?.index ?? first - across) + across, first), last);
      const line = ((picked?.line ?? -down) + down + lines) % lines;
      plot.setCursor({ left: plot.valToPos(xs[index], "x"), top: heightOf(line, index) }, false);
      pick(index, line);
    }

    host.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => step(-1, 0),
        ArrowRight: () => step(1, 0),
        ArrowUp: () => step(0, -1),
        ArrowDown: () => step(0, 1),
        Enter: cite,
        Escape: () => plot.setScale("x", { min: xs[0], max: xs.at(-1) }),
      };
      if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    });
    host.addEventListener("blur", () => pick(null, null));

    // --- draw a chart

    const size = () => { // the size of the static picture, but high enough for a phone
      const { width, height } = picture.viewBox.baseVal;
      const same = Math.round(live.clientWidth * height / width) - tools.offsetHeight;
      return { width: live.clientWidth, height: Math.max(190, same) };
    };

    function draw() {
      const kept = plot && { ...plot.scales.x };
      plot?.destroy();
      plot = null; // uPlot calls our hooks before its constructor returns
      drawn = values.map((line) => line.map(onAxis));
      const soft = () => colour("--soft"), font = "12px system-ui, sans-serif";
      const both = { stroke: soft, font, gap: 4, border: { show: true, stroke: soft, width: 1 } };
      const counts = Array.from({ length: 46 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3));
      plot = new uPlot({
        ...size(),
        padding: [8, 10, 0, 0],
        legend: { show: false },
        scales: {
          x: { time: false, range: (_, low, high) => (xs.length === 1 ? [xs[0] - 0.5, xs[0] + 0.5] : [low, high]) },
          y: { range: rangeOfY },
        },
        axes: [
          {
            ...both, grid: { show: false }, ticks: { stroke: soft, width: 1, size: 4 }, size: 22,
            incrs: counts, space: 45, values: (_, ticks) => ticks.map(String),
            label: chart.kind, labelSize: 16, labelFont: font,
          },
          {
            ...both, grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false }, size: 54,
            splits: () => axis.ticks, values: () => axis.labels,
            incrs: (_u, _side, low, high) => [Math.max(high - low, 5)], space: 0, // any value works, because `splits` sets the ticks
          },
        ],
        series: [{}, ...layers.map((number) => {
          const line = chart.lines[number];
          return {
            stroke: () => tone(line.tone), width: line.width, dash: line.dash, alpha: line.below ? 0.6 : 1, pxAlign: 0,
            points: { show: isFew, filter: alone, size: line.dot, width: 0, fill: () => tone(line.tone) },
          };
        })],
        cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, dist: STEADY + 1, click: () => {} } },
        hooks: { draw: [drawMarks], setCursor: [() => plot && follow()], setScale: [() => plot && pick(null, null)] },
      }, [xs, ...layers.map((number) => drawn[number])], host);
      if (kept) plot.setScale("x", { min: kept.min, max: kept.max });
      let pressed = null;
      plot.over.addEventListener("mousedown", (event) => { pressed = event; });
      plot.over.addEventListener("click", (event) => {
        const far = pressed ? Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) : 0;
        if (far <= STEADY && event.detail < 2) click();
      });
    }

    if (smallest !== null) {
      const toggle = element(tools, "button", "", "Log axis");
      toggle.type = "button";
      toggle.setAttribute("aria-pressed", String(log));
      toggle.addEventListener("click", () => {
        log = !log;
        toggle.setAttribute("aria-pressed", String(log));
        draw();
      });
    }
    figure.classList.add("is-live");
    pick(null, null);
    draw();
    // While a page is printed, the width is 0.
    new ResizeObserver(() => { if (![0, plot.width].includes(live.clientWidth)) plot.setSize(size()); }).observe(live);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  for (const [identifier, chart] of Object.entries(page.charts)) makeLive(document.getElementById(identifier), chart);
})();
