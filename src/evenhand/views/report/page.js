// Makes the page follow the slider: picks among the figures that evenhand.views.report.figures
// measured, and writes them as evenhand.views.report.live does, in the same sentences. Data reach the
// page as text and as numbers in attributes, never as markup.
(function () {
  "use strict";
  const model = JSON.parse(document.getElementById("model").textContent);
  const slider = document.getElementById("tau");
  if (!slider) return;

  const NONE = "–";
  const UNKNOWN = { accuracy: null, value: null, ratio: null, population: "", rates: [], right: [] };
  const HIDDEN = { visibility: "hidden" }, VISIBLE = { visibility: "visible" };

  function fixed(x, digits) {
    const scale = Math.pow(10, digits);
    const n = Math.floor(Math.abs(x) * scale + 0.5);
    const sign = x < 0 && n ? "−" : "";
    const whole = sign + String(Math.floor(n / scale));
    return digits ? whole + "." + String(n % scale).padStart(digits, "0") : whole;
  }
  const percent = (x) => (x === null ? NONE : fixed(100 * x, 1) + "%");
  const points = (x) => (x === null ? NONE : (x >= 0 ? "+" : "") + fixed(100 * x, 1));
  // Values are the larger the fairer, whatever is compared; words.sign makes of them what is read.
  const words = model.words;
  const reaches = (value, level) => value !== null && value >= level;
  const isOwn = (tau) => Math.abs(tau - model.tau) < 1e-9;
  function valueText(value, level, own = words) {
    if (value === null) return NONE;
    let text = "";
    for (let digits = 3; digits < 7; digits++) {
      text = fixed(own.sign * value, digits);
      if (reaches(own.sign * Number(text), level) === reaches(value, level)) return text;
    }
    return reaches(value, level) ? text : "just " + own.missed + " " + levelText(level, own);
  }
  const levelText = (level, own = words) =>
    fixed(own.sign * level, [2, 3].find((d) => {
      const parts = 10 ** d * level;
      return Math.abs(parts - Math.floor(parts + 0.5)) < 1e-9;
    }) ?? 4);
  const thousands = (n) => String(Math.floor(n + 0.5)).replace(/\B(?=(\d{3})+$)/g, ",");
  function valueOf(x) {
    if (x === null) return NONE;
    const [whole, rest] = fixed(words.per * x, words.digits).split(".");
    const grouped = whole.replace(/(?<=\d)(?=(\d{3})+$)/g, ",");
    return grouped + (rest === undefined ? "" : "." + rest) + words.unit;
  }
  const fill = (name, values) =>
    model.phrases[name].replace(/\{(\w+)\}/g, (_, key) => values[key] ?? words[key]);
  function scaled(value, low, high) {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    return fixed(100 * Math.min(Math.max(share, 0), 1), 2) + "%";
  }
  function place(x, y) {
    const [x0, x1, y0, y1] = model.box;
    return [scaled(x, x0, x1), scaled(-y, -y1, -y0)];
  }

  function pointAt(tau) {
    if (isOwn(tau) && model.chosen !== null) {
      return { index: model.chosen, reached: model.feasible, saved: true };
    }
    const n = model.n_points;
    const i = model.points.slice(0, n).findIndex((p) => reaches(p.reach, tau));
    const index = i < 0 ? n - 1 : i;
    return { index, reached: i >= 0, saved: index === model.chosen };
  }

  function live(tau, key) {
    const text = {}, mark = {}, target = levelText(tau);
    const { index, reached, saved } = pointAt(tau);
    const point = model.points[index];
    const part = model.parts.find((p) => p.key === key) || null;
    const now = point.figures[key] || UNKNOWN;
    const was = model.plain[key] || UNKNOWN;

    // Of the target that was asked for, Python said what is reached.
    function verdict(name, figure, goal, own = words) {
      const known = figure && figure.ratio !== null;
      const good = known && (isOwn(tau) ? figure.reached : reaches(figure.ratio, goal));
      const state = good ? "ok" : known ? "below" : "none";
      text[name] = fill("verdict." + state, { target: levelText(goal, own), missed: own.missed });
      text[name + ".sign"] = { ok: "✓", below: "✕", none: NONE }[state];
      mark[name] = { "data-state": state };
    }

    function sayTarget() {
      const own = isOwn(tau) && model.chosen !== null;
      const state = saved ? "saved" : "moved";
      text["tau"] = target;
      text["part"] = part ? part.words : "";
      text["part.n"] = part ? fill("rows", { n: thousands(part.n), part: part.words }) : "";
      text["status"] = fill(state, { saved: levelText(model.tau), target });
      mark["status"] = { "data-state": state };
      text["fitted.rate"] = valueText(point.rate, tau);
      text["fitted.value"] = valueOf(point.value);
      text["fitted.verdict"] = fill((own ? "own." : "") + (reached ? "reached" : "missed"),
        { target, where: model.where, sure: model.sure });
      if (!reached && model.relied && point.reach !== null) {
        text["fitted.verdict"] += fill("relied", { reach: valueText(point.reach, tau) });
      }
      mark["fitted.verdict"] = { "data-state": reached ? "ok" : "below" };
    }

    function sayFigures() {
      const figures = { "": now, "plain.": was, "best.": model.best_cut[key] || UNKNOWN };
      for (const name in figures) {
        text[name + "ratio"] = valueText(figures[name].ratio, tau);
        text[name + "value"] = valueOf(figures[name].value);
        text[name + "accuracy"] = percent(figures[name].accuracy);
      }
      text["population"] = now.population;
      verdict("verdict", now, tau);
      text["cost"] = now.cost ? fill(now.cost[0], { points: now.cost[1], best: now.cost[2] }) : "";
    }

    function showRate(spec, k) {
      const here = now.rates[k] || null, there = was.rates[k] || null;
      const goal = spec.share * tau - spec.offset, scale = here ? here.scale : spec.scale;
      const own = spec.words || words;
      for (let i = 0; i < 5; i++) {
        text[k + ".tick." + i] = fixed(25 * scale * i, scale > 0.2 ? 0 : 1) + "%";
      }
      text[k + ".ratio"] = valueText(here ? here.ratio : null, goal, own);
      text[k + ".plain"] = valueText(there ? there.ratio : null, goal, own);
      verdict(k + ".verdict", here, goal, own);
      mark[k + ".decides"] = { "data-state": now.worst === k ? "on" : "off" };
      const [start, slope] = (here && here.floor) || [0, 0];
      const line = start + slope * goal, end = scaled(line, 0, scale);
      mark[k + ".floor"] = { x1: end, x2: end, width: end, ...(line > 0 ? VISIBLE : HIDDEN) };
      const known = here && here.ratio !== null;
      text[k + ".floor"] = known && line > 0 ? fill("floor", { rate: percent(line) }) : "";
      text[k + ".extremes"] = known ? fill("extremes", {
        low: spec.rows[here.low],
        lowest: percent(here.rate[here.low]),
        high: spec.rows[here.high],
        highest: percent(here.rate[here.high]),
      }) : "";
      for (let j = 0; j < spec.rows.length; j++) {
        const before = showGroup(k + "." + j + ".before", there, j, scale);
        const after = showGroup(k + "." + j + ".after", here, j, scale);
        text[k + "." + j + ".alt"] = fill("alt", { group: spec.rows[j], before, after });
      }
    }

    function showGroup(name, rate, j, scale) {
      const share = rate ? rate.rate[j] : null;
      const [low, high] = rate && rate.interval.length ? rate.interval[j] : [null, null];
      const x = scaled(share, 0, scale), known = low !== null;
      text[name] = percent(share);
      text[name + ".span"] =
        known ? fill("span", { low: fixed(100 * low, 1), high: fixed(100 * high, 1) }) : "";
      text[name + ".of"] = rate && rate.top.length
        ? fill("of", { top: thousands(rate.top[j]), bottom: thousands(rate.bottom[j]) }) : "";
      mark[name] = share === null ? HIDDEN : { ...VISIBLE, x, cx: x };
      mark[name + ".bar"] =
        known ? { ...VISIBLE, x1: scaled(low, 0, scale), x2: scaled(high, 0, scale) } : HIDDEN;
      return text[name];
    }

    function placeMarks() {
      const [x0, x1, y0] = model.box;
      const x = scaled(tau, x0, x1), left = tau < x0 + 0.5 * (x1 - x0);
      mark["tau"] = { x1: x, x2: x };
      mark["tau.label"] = { x, "text-anchor": left ? "start" : "end", dx: left ? "14" : "-6" };
      mark["chosen"] = mark["seen"] = mark["link"] = HIDDEN;
      for (const other of model.parts) {
        mark["cloud." + other.key] = other.key === key ? VISIBLE : HIDDEN;
      }
      if (point.reach === null || point.value === null) return;
      if (point.value < y0) {
        text["off"] = fill("off", { value: valueOf(point.value) });
        return;
      }
      const [cx, cy] = place(point.reach, point.value);
      mark["chosen"] = { ...VISIBLE, cx, cy, "data-state": reached ? "ok" : "below" };
      if (key !== model.fitted && now.ratio !== null) {
        const [sx, sy] = place(now.ratio, now.value);
        mark["seen"] = { ...VISIBLE, cx: sx, cy: sy };
        mark["link"] = { ...VISIBLE, x1: cx, y1: cy, x2: sx, y2: sy };
      }
    }

    sayTarget();
    sayFigures();
    model.spec.forEach(showRate);
    for (let j = 0; j < model.n_rows; j++) {
      const [a, b] = [was, now].map((of) => (of.right.length ? of.right[j] : null));
      text["right." + j + ".before"] = percent(a);
      text["right." + j + ".after"] = percent(b);
      text["right." + j + ".change"] = points(a === null || b === null ? null : b - a);
    }
    text["off"] = "";
    if (model.box) placeMarks();
    text["spoken"] = fill(part ? "spoken" : "spoken.fitted", {
      target,
      verdict: text["fitted.verdict"],
      part: text["part"],
      ratio: text[part ? "ratio" : "fitted.rate"],
      value: text[part ? "value" : "fitted.value"],
    });
    return { text, mark };
  }

  const back = document.getElementById("back");
  const spoken = document.getElementById("spoken");
  const frontier = document.getElementById("frontier");
  const texts = Array.from(document.querySelectorAll("[data-t]"));
  const marks = Array.from(document.querySelectorAll("[data-m]"));
  const checked = () => document.querySelector("input[name=part]:checked");
  const only = model.parts.length ? model.parts[0].key : null;
  let tau = model.tau, waiting = 0;

  function show(speak, goal = tau) {
    const part = checked() ? checked().value : only;
    const { text, mark } = live(goal, part);
    for (const element of texts) element.textContent = text[element.dataset.t];
    for (const element of marks) {
      const found = mark[element.dataset.m];
      for (const name in found) element.setAttribute(name, found[name]);
    }
    slider.setAttribute("aria-valuetext", text["spoken"]);
    back.disabled = isOwn(goal);
    if (!speak) return;
    // A screen reader hears where the slider came to rest, not every step of the way.
    clearTimeout(waiting);
    waiting = setTimeout(() => { spoken.textContent = text["spoken"]; }, 500);
  }

  function move(value) {
    slider.value = String(value);
    // A step of the slider next to the report's own target is that target.
    const own = Math.abs(Number(slider.value) - model.tau) < 1e-6;
    tau = own ? model.tau : Number(slider.value);
    show(true);
  }

  slider.addEventListener("input", () => move(slider.value));
  back.addEventListener("click", () => {
    move(model.tau);
    slider.focus();
  });
  for (const radio of document.querySelectorAll("input[name=part]")) {
    radio.addEventListener("change", () => show(true));
  }
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  if (frontier && model.box) {
    const area = frontier.querySelector("svg");
    const follow = (event) => {
      const box = area.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      move(model.box[0] + share * (model.box[1] - model.box[0]));
    };
    frontier.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      frontier.setPointerCapture(event.pointerId);
      follow(event);
    });
    frontier.addEventListener("pointermove", (event) => {
      if (frontier.hasPointerCapture(event.pointerId)) follow(event);
    });
  }
  addEventListener("beforeprint", () => {
    for (const element of document.querySelectorAll("details")) element.open = true;
    // On paper the slider cannot be moved back.
    show(false, model.tau);
  });
  addEventListener("afterprint", () => show(false));
  document.documentElement.classList.add("js");
  show(false);
})();
