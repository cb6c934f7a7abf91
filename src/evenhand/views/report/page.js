// Makes the page follow the slider. What it computes is what evenhand.views.report._figures computes, and
// the sentences are the same, from the page's data. Data reach the page as text and as numbers in
// attributes, never as markup.
(function () {
  "use strict";
  const model = JSON.parse(document.getElementById("model").textContent);
  const slider = document.getElementById("tau");
  if (!slider) return;

  const Z95 = 1.959963984540054;
  const NONE = "–";

  // ---- formats ----
  function fixed(x, digits) {
    const scale = Math.pow(10, digits);
    const n = Math.floor(Math.abs(x) * scale + 0.5);
    const sign = x < 0 && n ? "−" : "";
    const whole = sign + String(Math.floor(n / scale));
    return digits ? whole + "." + String(n % scale).padStart(digits, "0") : whole;
  }
  const percent = (x) => (x === null ? NONE : fixed(100 * x, 1) + "%");
  const points = (x) => (x === null ? NONE : (x >= 0 ? "+" : "") + fixed(100 * x, 1));
  function ratioText(x, tau) {
    if (x === null) return NONE;
    let text = "";
    for (let digits = 3; digits < 7; digits++) {
      text = fixed(x, digits);
      if ((Number(text) >= tau) === (x >= tau)) return text;
    }
    return x < tau ? "just below " + tauText(tau) : text;
  }
  const tauText = (tau) =>
    fixed(tau, Math.abs(100 * tau - Math.floor(100 * tau + 0.5)) < 1e-9 ? 2 : 3);
  const thousands = (n) => String(Math.floor(n + 0.5)).replace(/\B(?=(\d{3})+$)/g, ",");
  const fill = (name, values) => model.phrases[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);

  // ---- rates ----
  function wilson(top, bottom) {
    if (bottom <= 0) return null;
    const p = top / bottom, z2 = Z95 * Z95;
    const middle = (p + z2 / (2 * bottom)) / (1 + z2 / bottom);
    const half = (Z95 / (1 + z2 / bottom)) *
      Math.sqrt((p * (1 - p)) / bottom + z2 / (4 * bottom * bottom));
    return [
      Math.min(Math.max(middle - half, 0), p),
      Math.max(Math.min(middle + half, 1), p),
    ];
  }

  function ratioLimits(one, other) {
    const p = one.rate, q = other.rate;
    const [low, high] = one.interval, [least, most] = other.interval;
    if (q <= 0) return [0, Infinity];
    const a = p * q;
    let top = low * (2 * p - low), bottom = most * (2 * q - most);
    const first = top > 0 ? top / (a + Math.sqrt(Math.max(a * a - top * bottom, 0))) : 0;
    top = high * (2 * p - high);
    bottom = least * (2 * q - least);
    return [first, (a + Math.sqrt(Math.max(a * a - top * bottom, 0))) / bottom];
  }

  function ratioInterval(rates, worst) {
    let low = 1;
    rates.forEach((rate, k) => {
      const groups = rate.groups.slice(0, model.groups.length);
      for (const one of groups) {
        for (const other of groups) {
          if (one !== other) low = Math.min(low, ratioLimits(one, other)[0] / model.spec[k].share);
        }
      }
    });
    const { groups, low: lowest, high: highest } = rates[worst];
    const end = ratioLimits(groups[lowest], groups[highest])[1] / model.spec[worst].share;
    return [low, Math.min(end, 1)];
  }

  function measure(sums, weighted) {
    if (!sums) return { accuracy: null, ratio: null, worst: null, interval: null, rates: [] };
    const n = model.groups.length;
    const rates = model.spec.map((part, k) => {
      const top = sums.top[k], bottom = sums.bottom[k];
      const groups = top.map((t, j) => ({
        rate: bottom[j] > 0 ? t / bottom[j] : null,
        interval: weighted ? null : wilson(t, bottom[j]),
        top: t,
        bottom: bottom[j],
      }));
      let low = 0, high = 0;
      for (let j = 1; j < n; j++) {
        if (top[j] * bottom[low] < top[low] * bottom[j]) low = j;
        if (top[j] * bottom[high] > top[high] * bottom[j]) high = j;
      }
      let ratio = null;
      if (n > 1 && bottom.slice(0, n).every((b) => b > 0)) {
        if (top[high] > 0) ratio = (top[low] * bottom[high]) / (bottom[low] * top[high]);
        else if (part.error) ratio = 1;
      }
      return { ratio, low, high, groups };
    });
    let worst = null, least = null;
    for (let k = 0; k < rates.length; k++) {
      if (rates[k].ratio === null) {
        worst = least = null;
        break;
      }
      const scaledRatio = Math.min(rates[k].ratio / model.spec[k].share, 1);
      if (least === null || scaledRatio < least) {
        worst = k;
        least = scaledRatio;
      }
    }
    const interval = worst !== null && !weighted ? ratioInterval(rates, worst) : null;
    const right = sums.right.map((r, j) => (sums.n[j] > 0 ? r / sums.n[j] : null));
    return { accuracy: sums.accuracy, ratio: least, worst, interval, rates, right };
  }

  // ---- the chosen point ----
  function pointAt(tau) {
    if (Math.abs(tau - model.tau) < 1e-9 && model.chosen !== null) {
      return { index: model.chosen, reached: model.feasible, saved: true };
    }
    const n = model.n_points;
    const i = model.points.slice(0, n).findIndex((p) => p.reach !== null && p.reach >= tau);
    const index = i < 0 ? n - 1 : i;
    return { index, reached: i >= 0, saved: index === model.chosen };
  }

  function scaled(value, low, high) {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    return fixed(100 * Math.min(Math.max(share, 0), 1), 2) + "%";
  }

  function live(tau, part) {
    const text = {}, mark = {};
    const { index, reached, saved } = pointAt(tau);
    const point = model.points[index];
    const at = model.parts.find((p) => p.key === part) || null;
    const weighted = Boolean(at && at.weighted);
    const now = measure(point.sums[part], weighted);
    const was = measure(model.plain[part], weighted);
    const best = measure(model.best_cut[part], weighted);
    const target = tauText(tau);
    const span = (interval) => interval
      ? fill("span", { low: fixed(100 * interval[0], 1), high: fixed(100 * interval[1], 1) }) : "";

    text["tau"] = target;
    text["part"] = at ? at.words : "";
    text["part.n"] = at ? fill("rows", { n: thousands(at.n), part: at.words }) : "";
    text["status"] = fill(saved ? "saved" : "moved", { saved: tauText(model.tau), target });
    mark["status"] = { "data-state": saved ? "saved" : "moved" };
    text["fitted.rate"] = ratioText(point.rate, tau);
    text["fitted.accuracy"] = percent(point.accuracy);
    const own = Math.abs(tau - model.tau) < 1e-9 && model.chosen !== null;
    text["fitted.verdict"] = fill((own ? "own." : "") + (reached ? "reached" : "missed"),
      { target, where: model.where, sure: model.sure });
    if (!reached && model.relied && point.reach !== null) {
      text["fitted.verdict"] += fill("relied", { reach: ratioText(point.reach, tau) });
    }
    mark["fitted.verdict"] = { "data-state": reached ? "ok" : "below" };

    function verdict(name, ratio, goal) {
      const state = ratio === null ? "none" : ratio >= goal ? "ok" : "below";
      text[name] = fill("verdict." + state, { target: tauText(goal) });
      text[name + ".sign"] = { ok: "✓", below: "✕", none: "–" }[state];
      mark[name] = { "data-state": state };
    }
    text["ratio"] = ratioText(now.ratio, tau);
    text["accuracy"] = percent(now.accuracy);
    text["plain.ratio"] = ratioText(was.ratio, tau);
    text["plain.accuracy"] = percent(was.accuracy);
    text["best.ratio"] = ratioText(best.ratio, tau);
    text["best.accuracy"] = percent(best.accuracy);
    text["ratio.interval"] = now.interval
      ? fill("between", { low: fixed(now.interval[0], 2), high: fixed(now.interval[1], 2) }) : "";
    verdict("verdict", now.ratio, tau);
    text["cost"] = "";
    if (now.accuracy !== null && was.accuracy !== null) {
      const lost = was.accuracy - now.accuracy;
      let name = Math.abs(lost) < 0.0005 ? "cost.none" : lost > 0 ? "cost.less" : "cost.unknown";
      let gained = 0;
      if (name === "cost.unknown" && best.accuracy !== null) {
        gained = now.accuracy - best.accuracy;
        name = gained >= 0.0005 ? "cost.more" : "cost.cut";
      }
      text["cost"] =
        fill(name, { points: fixed(100 * Math.abs(lost), 1), best: fixed(100 * gained, 1) });
    }

    model.spec.forEach((spec, k) => {
      const goal = spec.share * tau;
      const here = now.rates[k] || null, there = was.rates[k] || null;
      let scale = spec.scale;
      for (const found of [there, here]) {
        const shown = found ? found.groups.slice(0, model.groups.length) : [];
        if (shown.some((g) => g.rate !== null && g.rate > scale)) scale = 1;
      }
      for (let i = 0; i < 5; i++) {
        text[k + ".tick." + i] = fixed(25 * scale * i, scale > 0.2 ? 0 : 1) + "%";
      }
      text[k + ".ratio"] = ratioText(here ? here.ratio : null, goal);
      text[k + ".plain"] = ratioText(there ? there.ratio : null, goal);
      verdict(k + ".verdict", here ? here.ratio : null, goal);
      mark[k + ".decides"] = { "data-state": now.worst === k ? "on" : "off" };
      const top = here && model.groups.length ? here.groups[here.high].rate : null;
      const line = top === null ? 0 : goal * top;
      const end = scaled(line, 0, scale);
      mark[k + ".floor"] =
        { x1: end, x2: end, width: end, visibility: line > 0 ? "visible" : "hidden" };
      const known = here && here.ratio !== null;
      text[k + ".floor"] = top !== null && known
        ? fill("floor", { share: fixed(100 * goal, 0), rate: percent(line) }) : "";
      text[k + ".extremes"] = known ? fill("extremes", {
        low: model.groups[here.low],
        lowest: percent(here.groups[here.low].rate),
        high: model.groups[here.high],
        highest: percent(here.groups[here.high].rate),
      }) : "";
      for (let j = 0; j < model.n_rows; j++) {
        const spokenRates = [];
        for (const [when, found] of [["before", there], ["after", here]]) {
          const name = k + "." + j + "." + when;
          const group = found ? found.groups[j] : null;
          const share = group ? group.rate : null;
          text[name] = percent(share);
          text[name + ".span"] = group ? span(group.interval) : "";
          text[name + ".of"] = group && !weighted
            ? fill("of", { top: thousands(group.top), bottom: thousands(group.bottom) }) : "";
          spokenRates.push(percent(share));
          mark[name] = { visibility: share === null ? "hidden" : "visible" };
          if (share !== null) mark[name].x = mark[name].cx = scaled(share, 0, scale);
          const bar = group ? group.interval : null;
          mark[name + ".bar"] = { visibility: bar ? "visible" : "hidden" };
          if (bar) {
            mark[name + ".bar"].x1 = scaled(bar[0], 0, scale);
            mark[name + ".bar"].x2 = scaled(bar[1], 0, scale);
          }
        }
        text[k + "." + j + ".alt"] =
          fill("alt", { group: model.rows[j], before: spokenRates[0], after: spokenRates[1] });
      }
    });
    for (let j = 0; j < model.n_rows; j++) {
      const a = was.rates.length ? was.right[j] : null;
      const b = now.rates.length ? now.right[j] : null;
      text["right." + j + ".before"] = percent(a);
      text["right." + j + ".after"] = percent(b);
      text["right." + j + ".change"] = points(a === null || b === null ? null : b - a);
    }

    text["off"] = "";
    if (model.box) {
      const [x0, x1, y0, y1] = model.box;
      const x = scaled(tau, x0, x1), left = tau < x0 + 0.5 * (x1 - x0);
      mark["tau"] = { x1: x, x2: x };
      mark["tau.label"] =
        { x, "text-anchor": left ? "start" : "end", dx: left ? "14" : "-6" };
      mark["chosen"] = { visibility: "hidden" };
      mark["seen"] = { visibility: "hidden" };
      mark["link"] = { visibility: "hidden" };
      const drawn = point.reach !== null && point.accuracy !== null;
      if (drawn && point.accuracy < y0) {
        text["off"] = fill("off", { accuracy: percent(point.accuracy) });
      } else if (drawn) {
        const cx = scaled(point.reach, x0, x1), cy = scaled(-point.accuracy, -y1, -y0);
        mark["chosen"] =
          { visibility: "visible", cx, cy, "data-state": reached ? "ok" : "below" };
        if (part !== model.fitted && now.ratio !== null) {
          const sx = scaled(now.ratio, x0, x1), sy = scaled(-now.accuracy, -y1, -y0);
          mark["seen"] = { visibility: "visible", cx: sx, cy: sy };
          mark["link"] = { visibility: "visible", x1: cx, y1: cy, x2: sx, y2: sy };
        }
      }
      for (const other of model.parts) {
        mark["cloud." + other.key] = { visibility: other.key === part ? "visible" : "hidden" };
      }
    }
    text["spoken"] = at
      ? fill("spoken", {
        target,
        verdict: text["fitted.verdict"],
        ratio: text["ratio"],
        part: text["part"],
        accuracy: text["accuracy"],
      })
      : fill("spoken.fitted", {
        target,
        verdict: text["fitted.verdict"],
        ratio: text["fitted.rate"],
        accuracy: text["fitted.accuracy"],
      });
    return { text, mark };
  }

  // ---- the page ----
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
    back.disabled = Math.abs(goal - model.tau) < 1e-9;
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
