// Draws the charts of a report from the numbers in #report-data. All text goes in as text.
"use strict";
(() => {
  const data = JSON.parse(document.querySelector("script#report-data").textContent);
  const shown = { hidden: new Set(), centre: "mean", bands: true, bounds: true };
  const redraws = []; // of every chart and legend

  // ------------------------------------------------------------------ elements

  function element(space, tag, attributes, children) {
    const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== undefined && value !== null) node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }
  const html = (tag, attributes, ...children) => element(null, tag, attributes, children);
  const svg = (tag, attributes, ...children) =>
    element("http://www.w3.org/2000/svg", tag, attributes, children);

  // ------------------------------------------------------------------ looks of learners

  const COLOURS = 7;
  const DASHES = ["", "8 4", "2 4", "10 3 2 3"];
  const MARKERS = [
    (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
    (r) => `M0,${-1.3 * r}L${1.2 * r},${r}H${-1.2 * r}Z`,
    (r) => `M0,${-1.4 * r}L${1.4 * r},0L0,${1.4 * r}L${-1.4 * r},0Z`,
  ];
  const colour = (i) => `var(--c${data.looks[i] % COLOURS})`;
  const cycle = (i) => Math.floor(data.looks[i] / COLOURS) % DASHES.length;
  const marker = (i, r = 3) => MARKERS[cycle(i)](r);
  const swatch = (i) =>
    svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
      svg("path", { d: "M1,6H25", class: "curve", style: `stroke:${colour(i)}`, "stroke-dasharray": DASHES[cycle(i)] }),
      svg("path", { d: marker(i, 3.2), transform: "translate(13,6)", style: `fill:${colour(i)}` }));
  const key = (i) => html("span", { class: "key" }, swatch(i), data.learners[i]);
  const visible = (i) => !shown.hidden.has(i);

  // ------------------------------------------------------------------ numbers

  const raised = (k) => String(k).replace(/[-0-9]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  function tick(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e4 || size < 1e-3) {
      const k = Math.floor(Math.log10(size) + 1e-9);
      const m = +(value / 10 ** k).toPrecision(3);
      const sign = value < 0 ? "−" : "";
      return Math.abs(m) === 1 ? `${sign}10${raised(k)}` : `${m}·10${raised(k)}`.replace("-", "−");
    }
    return String(+value.toPrecision(4)).replace("-", "−");
  }
  function text(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1e6 || (size < 1e-4 && size > 0)) return value.toExponential(digits - 1).replace("-", "−").replace("e+", "e");
    if (size >= 1000) return Math.round(value).toLocaleString("en-US").replace("-", "−");
    return String(+value.toPrecision(digits)).replace("-", "−");
  }
  const whole = (value) => (Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en-US") : text(value));

  // ------------------------------------------------------------------ scales

  function linear(low, high, from, to) {
    const scale = (v) => from + ((v - low) / (high - low)) * (to - from);
    scale.ticks = (count) => {
      const rough = (high - low) / count;
      const unit = 10 ** Math.floor(Math.log10(rough));
      const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.999);
      const found = [];
      for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(+(k * step).toPrecision(12));
      return found;
    };
    return scale;
  }
  function logarithmic(low, high, from, to) {
    const a = Math.log10(low), b = Math.log10(high);
    const scale = (v) => from + ((Math.log10(v) - a) / (b - a)) * (to - from);
    scale.ticks = (count) => {
      const decades = b - a;
      const found = [];
      if (decades < 0.7) return linear(low, high, from, to).ticks(count);
      const inside = decades <= count / 3 ? [1, 2, 5] : decades <= count / 2 ? [1, 3] : [1];
      const every = [1, 2, 3, 5, 10, 20, 50, 100, 200].find((e) => e >= decades / count - 0.2);
      for (let k = Math.floor(a); k <= b; k++) {
        if (((k % every) + every) % every) continue;
        for (const m of inside) {
          const v = m * 10 ** k;
          if (v >= low * 0.999 && v <= high * 1.001) found.push(+v.toPrecision(6));
        }
      }
      return found;
    };
    return scale;
  }
  function steps(values, from, to) {
    const place = new Map(values.map((v, i) => [v, i]));
    const gap = (to - from) / values.length;
    const scale = (v) => from + gap * (place.get(v) + 0.5);
    scale.ticks = () => values;
    return scale;
  }
  function padded(low, high, log) {
    const same = high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high)); // but for rounding
    if (log) {
      const wide = (Math.log10(high) - Math.log10(low)) * 0.04;
      const [a, b] = same ? [low / 2, high * 2] : [low / 10 ** wide, high * 10 ** wide];
      return [Math.max(a, 1e-307), Math.min(b, 1e308)]; // the ends of the floating-point numbers
    }
    if (same) return [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
    return [low - (high - low) * 0.04, high + (high - low) * 0.04];
  }
  // Logarithmic if nearly everything is positive and spans a factor that a linear axis would hide.
  function wantsLog(values) {
    const there = values.filter((v) => v !== null && v !== undefined);
    const positive = there.filter((v) => v > 0);
    if (!positive.length || positive.length < 0.95 * there.length) return false;
    return Math.max(...positive) > 8 * Math.min(...positive);
  }

  // ------------------------------------------------------------------ a chart's frame

  function mount(figure, section, chart) {
    const plot = figure.querySelector(".plot");
    const controls = figure.querySelector(".controls");
    const view = { panel: chart.start || 0, log: null, reference: null };
    if (chart.kind === "none") return;
    const draw = () => {
      if (chart.kind === "lines") drawLines(plot, chart, view);
      else if (chart.kind === "dots") drawDots(plot, chart, view);
      else if (chart.kind === "heat") drawHeat(plot, chart, view);
      else drawTable(plot, chart, view, section);
      redrawNumbers();
    };
    const names = [...new Set(chart.panels.flatMap((panel) => Object.keys(panel.keys)))];
    const selects = new Map();
    for (const name of names) {
      const values = [...new Set(chart.panels.map((panel) => panel.keys[name]).filter((v) => v !== undefined))];
      if (values.length < 2) continue;
      const select = html("select", { onchange: () => { view.panel = nearestPanel(name, select.value); settle(); } },
        ...values.map((value) => html("option", { value }, value)));
      selects.set(name, select);
      controls.append(html("label", {}, name, select));
    }
    function nearestPanel(name, value) { // not every combination need exist
      const now = chart.panels[view.panel].keys;
      let best = view.panel, most = -1;
      chart.panels.forEach((panel, i) => {
        if (panel.keys[name] !== value) return;
        const same = Object.keys(now).filter((k) => panel.keys[k] === now[k]).length;
        if (same > most) { most = same; best = i; }
      });
      return best;
    }
    function settle() {
      const keys = chart.panels[view.panel].keys;
      for (const [name, select] of selects) {
        if (keys[name] !== undefined) select.value = keys[name];
        select.parentElement.hidden = keys[name] === undefined;
      }
      draw();
    }
    if (chart.kind === "lines" || (chart.kind === "dots" && chart.x.scale === "auto")) {
      const button = html("button", { type: "button", onclick: () => { view.log = !view.isLog; draw(); } }, "");
      controls.append(button);
      view.said = () => { button.textContent = view.isLog ? "linear axis" : "log axis"; };
    }
    let redrawNumbers = () => {};
    if (chart.kind === "lines" || chart.kind === "dots") {
      const place = html("div", {});
      const details = html("details", {}, html("summary", {}, "Numbers as a table"), place);
      redrawNumbers = () => {
        place.replaceChildren();
        if (details.open) place.append(numbersOf(chart, chart.panels[view.panel]));
      };
      details.addEventListener("toggle", () => redrawNumbers());
      figure.append(details);
    }
    redraws.push(draw);
    settle();
    let width = plot.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - width) > 4) { width = plot.clientWidth; draw(); }
    }).observe(plot);
  }

  function numbersOf(chart, panel) {
    const dots = chart.kind === "dots";
    const median = panel.series.some((s) => s.median && s.median.length);
    const head = ["learner", ...(dots ? [] : [chart.x.label]), dots ? chart.x.label : median ? "mean" : "value",
      ...(median ? ["median"] : []), "from", "to", "replicates"];
    const rows = panel.series.flatMap((s) => s.mean.map((m, i) => [
      data.learners[s.learner], ...(dots ? [] : [whole(s.x[i])]), text(m, 5), ...(median ? [text(s.median[i], 5)] : []),
      text(s.low[i], 5), text(s.high[i], 5), whole(s.replicates || 0)]));
    return html("div", { class: "scroll", tabindex: 0 },
      html("table", {},
        html("caption", { class: "aside" }, `${describe(panel)}; from and to: ${chart.band}`),
        html("thead", {}, html("tr", {}, ...head.map((h, i) => html("th", { scope: "col", class: i ? "n" : "" }, h)))),
        html("tbody", {}, ...rows.map((row) => html("tr", {}, ...row.map((c, i) =>
          i ? html("td", { class: "n" }, c) : html("th", { scope: "row" }, c)))))));
  }
  const describe = (panel) => Object.entries(panel.keys).map(([k, v]) => `${k} ${v}`).join(", ");

  // ------------------------------------------------------------------ curves

  function drawLines(plot, chart, view) {
    const panel = chart.panels[view.panel];
    const centre = (s) => (shown.centre === "median" && s.median && s.median.length ? s.median : s.mean);
    const series = panel.series.filter((s) => visible(s.learner));
    const lines = shown.bounds ? (panel.bounds || []).filter((b) => visible(b.learner)) : [];
    const all = [...panel.series.flatMap(centre), ...(panel.bounds || []).flatMap((b) => b.y)];
    const log = view.log ?? (chart.y.scale === "auto" ? wantsLog(all) : chart.y.scale === "log");
    view.isLog = log;
    if (view.said) view.said();
    const fits = (v) => v !== null && v !== undefined && (!log || v > 0);

    const xs = [...new Set(panel.series.flatMap((s) => s.x))].sort((a, b) => a - b);
    const middles = series.flatMap(centre).filter(fits);
    const edges = shown.bands ? series.flatMap((s) => [...s.low, ...s.high]).filter(fits) : [];
    let low = Math.min(...middles, ...edges), high = Math.max(...middles, ...edges);
    if (log && middles.length) low = Math.max(low, Math.min(...middles) / 20); // a band may go down to 0
    const limits = lines.flatMap((b) => b.y);
    // On a linear axis a bound far above everything measured would flatten the curves.
    const above = log ? [] : lines.filter((b) => Math.min(...b.y) > 1.6 * high);
    for (const v of log ? limits : limits.filter((v) => v <= 1.6 * high)) { low = Math.min(low, v); high = Math.max(high, v); }
    if (!middles.length) [low, high] = log ? [0.1, 1] : [0, 1];
    if (!log && low > 0 && low < 0.4 * high) low = 0;
    [low, high] = low === 0 && high > 0 && !log ? [0, high * 1.05] : padded(low, high, log);

    const width = Math.max(plot.clientWidth, 260);
    const height = Math.round(Math.min(Math.max(width * 0.62, 250), 400));
    const bottom = height - 40, top = 24;
    const y = (log ? logarithmic : linear)(low, high, bottom, top);
    const yTicks = y.ticks(6);
    const left = 14 + 7 * Math.max(3, ...yTicks.map((v) => tick(v).length)), right = width - 12;
    const [x0, x1] = chart.x.scale === "steps" ? [0, 1] : padded(xs[0], xs[xs.length - 1], chart.x.scale === "log");
    const x = chart.x.scale === "steps" ? steps(xs, left, right)
      : (chart.x.scale === "log" ? logarithmic : linear)(x0, x1, left, right);

    const root = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
      "aria-label": `${chart.title}: ${chart.y.label} against ${chart.x.label}; ${describe(panel)}. ` +
        "Arrow keys move along the curves; the numbers are in the table below.",
      class: series.length > 5 ? "many" : "",
    });
    const clip = `clip-${plot.parentElement.id}`;
    root.append(svg("clipPath", { id: clip }, svg("rect", { x: left, y: top - 4, width: right - left, height: bottom - top + 8 })));
    for (const v of yTicks) {
      root.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }),
        svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, tick(v)));
    }
    for (const v of spaced(xTicks(x, xs, width, chart.x.scale), x, (v) => 7 * tick(v).length + 10)) {
      root.append(svg("line", { class: "frame", x1: x(v), x2: x(v), y1: bottom, y2: bottom + 4 }),
        svg("text", { x: x(v), y: bottom + 17, "text-anchor": "middle" }, tick(v)));
    }
    root.append(svg("line", { class: "frame", x1: left, x2: right, y1: bottom, y2: bottom }),
      svg("text", { class: "axis", x: (left + right) / 2, y: height - 5, "text-anchor": "middle" }, chart.x.label),
      svg("text", { class: "axis", x: 2, y: 12 }, chart.y.label));

    const inside = svg("g", { "clip-path": `url(#${clip})` });
    root.append(inside);
    const groups = new Map();
    for (const s of series) {
      const group = svg("g", { class: "learner", "data-learner": s.learner });
      groups.set(s.learner, group);
      inside.append(group);
      if (shown.bands) {
        const there = s.x.map((_, i) => i).filter((i) => fits(s.high[i]) && s.low[i] !== null);
        const up = there.map((i) => `${x(s.x[i])},${y(s.high[i])}`);
        const down = there.map((i) => `${x(s.x[i])},${log && s.low[i] <= low ? bottom + 4 : y(s.low[i])}`).reverse();
        if (there.length > 1) group.append(svg("polygon", { class: "band", points: [...up, ...down].join(" "), style: `fill:${colour(s.learner)}` }));
      }
    }
    for (const b of lines) {
      groups.get(b.learner)?.append(svg("path", { class: "bound", d: path(b.x, b.y, x, y, fits), style: `stroke:${colour(b.learner)}` }));
    }
    for (const s of series) {
      const group = groups.get(s.learner), values = centre(s);
      group.append(svg("path", { class: "curve", d: path(s.x, values, x, y, fits), style: `stroke:${colour(s.learner)}`, "stroke-dasharray": DASHES[cycle(s.learner)] }));
      if (s.x.length <= 24) s.x.forEach((v, i) => {
        if (fits(values[i])) group.append(svg("path", { class: "point", d: marker(s.learner), transform: `translate(${x(v)},${y(values[i])})`, style: `fill:${colour(s.learner)}` }));
      });
    }
    const guide = svg("line", { class: "guide", y1: top, y2: bottom, visibility: "hidden" });
    root.append(guide);
    plot.replaceChildren(root);
    if (!series.length) plot.append(html("p", { class: "aside" }, "No learner is selected."));
    if (above.length) plot.append(html("p", { class: "aside" },
      "Above the axis: " + above.map((b) => `bound of ${data.learners[b.learner]} (${text(Math.min(...b.y), 3)} to ${text(Math.max(...b.y), 3)})`).join(", ") + "."));
    const below = series.some((s) => centre(s).some((v) => v !== null && v <= 0));
    if (log && below) plot.append(html("p", { class: "aside" }, "Values that are not positive are not on the logarithmic axis."));

    hover(plot, root, width, height, guide, groups, xs, x, (at) => {
      const rows = [];
      for (const s of series) {
        const i = s.x.indexOf(at);
        if (i < 0) continue;
        const line = lines.find((b) => b.learner === s.learner);
        const j = line ? line.x.indexOf(at) : -1;
        rows.push({ learner: s.learner, value: centre(s)[i], low: s.low[i], high: s.high[i],
          bound: j < 0 ? null : line.y[j], y: fits(centre(s)[i]) ? y(centre(s)[i]) : bottom });
      }
      return { head: `${chart.x.label} = ${whole(at)}`, rows };
    });
  }

  function path(xs, ys, x, y, fits) {
    let d = "", pen = false;
    xs.forEach((v, i) => {
      if (!fits(ys[i])) { pen = false; return; }
      d += `${pen ? "L" : "M"}${x(v).toFixed(2)},${y(ys[i]).toFixed(2)}`;
      pen = true;
    });
    return d;
  }
  function xTicks(x, xs, width, scale) {
    if (scale === "steps" || xs.length <= 6) return xs;
    return x.ticks(Math.max(3, Math.floor(width / 90)));
  }
  function spaced(values, x, size) { // without overlaps, the last one kept
    const kept = [];
    let next = Infinity;
    for (const v of [...values].reverse()) {
      if (x(v) + size(v) / 2 <= next) { kept.push(v); next = x(v) - size(v) / 2; }
    }
    return kept;
  }

  function hover(plot, root, width, height, guide, groups, xs, x, at) {
    const tip = html("div", { class: "tip", role: "status", hidden: "" });
    plot.append(tip);
    let now = -1;
    function show(index, py) {
      now = index;
      const { head, rows } = at(xs[index]);
      rows.sort((a, b) => a.y - b.y);
      const near = py === null ? null : rows.reduce((best, r) => (!best || Math.abs(r.y - py) < Math.abs(best.y - py) ? r : best), null);
      guide.setAttribute("x1", x(xs[index]));
      guide.setAttribute("x2", x(xs[index]));
      guide.setAttribute("visibility", "visible");
      emphasise(groups, near ? near.learner : null);
      const bounded = rows.some((r) => r.bound !== null);
      const body = rows.map((r) => html("tr", { class: near === r ? "near" : "" },
        html("td", {}, key(r.learner)), html("td", { class: "n" }, text(r.value)),
        html("td", { class: "n quiet between" }, r.low === null ? "" : `${text(r.low, 3)} to ${text(r.high, 3)}`),
        ...(bounded ? [html("td", { class: "n quiet" }, r.bound === null ? "" : `≤ ${text(r.bound, 3)}`)] : [])));
      tip.replaceChildren(html("div", { class: "quiet" }, head), html("table", {}, html("tbody", {}, ...body)));
      tip.hidden = false;
      const k = plot.clientWidth / width, px = x(xs[index]) * k;
      const room = plot.clientWidth - tip.offsetWidth;
      const side = px + 14 + tip.offsetWidth <= plot.clientWidth ? px + 14 : px - 14 - tip.offsetWidth;
      tip.style.left = `${Math.max(Math.min(side, room), Math.min(0, room))}px`;
      tip.style.top = `${side < 0 ? height * k - 30 : 20}px`;
    }
    function hide() {
      now = -1;
      tip.hidden = true;
      guide.setAttribute("visibility", "hidden");
      emphasise(groups, null);
    }
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect();
      const px = ((event.clientX - box.left) / box.width) * width;
      const py = ((event.clientY - box.top) / box.height) * height;
      let best = 0;
      xs.forEach((v, i) => { if (Math.abs(x(v) - px) < Math.abs(x(xs[best]) - px)) best = i; });
      if (xs.length) show(best, py);
    });
    root.addEventListener("pointerleave", hide);
    root.addEventListener("blur", hide);
    root.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step || !xs.length) return;
      event.preventDefault();
      show(now < 0 ? (step > 0 ? 0 : xs.length - 1) : Math.min(Math.max(now + step, 0), xs.length - 1), null);
    });
  }
  function emphasise(groups, learner) {
    for (const [i, group] of groups) {
      group.classList.toggle("strong", i === learner);
      for (const part of group.children) part.classList.toggle("dim", learner !== null && i !== learner);
    }
  }

  // ------------------------------------------------------------------ dots with intervals

  function drawDots(plot, chart, view) {
    const panel = chart.panels[view.panel];
    const rows = panel.series.filter((s) => visible(s.learner));
    const all = panel.series.flatMap((s) => [s.mean[0], s.low[0], s.high[0]]);
    const log = view.log ?? (chart.x.scale === "auto" && wantsLog(all));
    view.isLog = log;
    if (view.said) view.said();
    const fits = (v) => v !== null && v !== undefined && (!log || v > 0);
    const values = [...rows.flatMap((s) => [s.mean[0], s.low[0], s.high[0]]), panel.reference].filter(fits);
    const width = Math.max(plot.clientWidth, 260);
    const each = 22, top = fits(panel.reference) ? 16 : 6, bottom = top + each * Math.max(rows.length, 1) + 4, height = bottom + 40;
    const longest = Math.max(...rows.map((s) => data.learners[s.learner].length), 4);
    const left = Math.min(7 * longest + 24, width * 0.5), right = width - 14;
    const [low, high] = values.length ? padded(Math.min(...values), Math.max(...values), log) : [log ? 0.1 : 0, 1];
    const x = (log ? logarithmic : linear)(low, high, left, right);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${chart.title}: ${chart.x.label}; ${describe(panel)}. The numbers are in the table below.` });
    for (const v of spaced(x.ticks(Math.max(3, Math.floor((right - left) / 70))), x, (v) => 7 * tick(v).length + 8)) {
      root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: top, y2: bottom }),
        svg("text", { x: x(v), y: bottom + 15, "text-anchor": "middle" }, tick(v)));
    }
    if (fits(panel.reference)) root.append(svg("line", { class: "reference", x1: x(panel.reference), x2: x(panel.reference), y1: top, y2: bottom }),
      svg("text", { x: x(panel.reference) + 4, y: top + 6, class: "axis" }, panel.reference === 0.5 ? "1/2" : text(panel.reference)));
    root.append(svg("line", { class: "frame", x1: left, x2: right, y1: bottom, y2: bottom }),
      svg("text", { class: "axis", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" },
        panel.keys["slope in"] ? `slope in ${panel.keys["slope in"]}` : chart.x.label));
    const room = Math.floor((left - 14) / 7);
    rows.forEach((s, i) => {
      const y = top + each * (i + 0.5) + 2, name = data.learners[s.learner];
      const group = svg("g", { class: "learner", "data-learner": s.learner });
      group.append(svg("text", { class: "name", x: left - 12, y: y + 4, "text-anchor": "end" },
        name.length > room ? `${name.slice(0, room - 1)}…` : name, svg("title", {}, name)));
      const [m, a, b] = [s.mean[0], s.low[0], s.high[0]];
      if (fits(b) && a !== null) group.append(svg("line", { x1: Math.max(fits(a) ? x(a) : left, left), x2: x(b), y1: y, y2: y,
        style: `stroke:${colour(s.learner)}`, "stroke-width": 2.5, "stroke-linecap": "round" }));
      if (fits(m)) group.append(svg("path", { class: "point", d: marker(s.learner, 4.5), transform: `translate(${x(m)},${y})`, style: `fill:${colour(s.learner)}` }));
      else group.append(svg("text", { x: left + 4, y: y + 4 }, m === null ? "not defined" : text(m)));
      group.append(svg("rect", { x: 0, y: y - each / 2, width, height: each, fill: "transparent" },
        svg("title", {}, `${name}: ${text(m)}, ${chart.band} ${text(a)} to ${text(b)}, ${whole(s.replicates)} replicates`)));
      root.append(group);
    });
    plot.replaceChildren(root);
  }

  // ------------------------------------------------------------------ heat map and tables

  const sorting = new WeakMap(); // chart -> [column, direction]

  function sortable(chart, labels, rows, classes, redraw) {
    const [column, direction] = sorting.get(chart) || [null, 1];
    if (column !== null) {
      rows.sort((a, b) => {
        const [u, v] = [a.values[column], b.values[column]];
        if (u === null || v === null) return (u === null) - (v === null);
        return direction * (typeof u === "string" ? u.localeCompare(v) : u - v);
      });
    }
    return html("thead", {}, html("tr", {}, ...labels.map((label, i) =>
      html("th", { scope: "col", class: classes[i] || "", "aria-sort": column === i ? (direction > 0 ? "ascending" : "descending") : undefined },
        html("button", { type: "button", onclick: () => {
          sorting.set(chart, [i, column === i ? -direction : 1]);
          redraw();
        } }, label)))));
  }

  function drawHeat(plot, chart, view) {
    const panel = chart.panels[view.panel];
    const everything = panel.heat.flat().filter((v) => v !== null);
    const floor = Math.max(Math.min(...everything.map(Math.abs).filter((v) => v > 0)), Math.max(...everything) / 1e4);
    const curve = (v) => (v <= floor ? 0 : Math.log(v / floor));
    const most = Math.max(...everything.map(curve), 1e-9);
    const rows = panel.learners.map((learner, i) => ({ learner, cells: panel.heat[i], values: [data.learners[learner], ...panel.heat[i]] }))
      .filter((row) => visible(row.learner));
    const head = sortable(chart, ["learner", ...panel.columns], rows, [], () => drawHeat(plot, chart, view));
    const body = rows.map((row) => html("tr", { "data-learner": row.learner },
      html("th", { scope: "row" }, key(row.learner)),
      ...row.cells.map((v, j) => {
        if (v === null) return html("td", {}, "–");
        const share = Math.round(curve(v) / most * 60); // so that ink is legible on the strongest
        return html("td", { style: `background:color-mix(in oklab, var(--heat) ${share}%, var(--paper))`,
          title: `${data.learners[row.learner]} against ${panel.columns[j]}: ${text(v)}` }, text(v, 3));
      })));
    plot.replaceChildren(html("div", { class: "scroll", tabindex: 0 },
      html("table", { class: panel.columns.length > 5 ? "heat tall" : "heat" }, head, html("tbody", {}, ...body))));
  }

  function drawTable(plot, chart, view, section) {
    const panel = chart.panels[view.panel];
    const redraw = () => drawTable(plot, chart, view, section);
    let lines = panel.rows;
    if (chart.kind === "paired") lines = againstReference(plot, chart, view, section, panel, redraw);
    const rows = lines.filter((row) => visible(row[0])).map((row) => ({ row, values: row.map((v, i) => {
      const kind = chart.columns[i].kind;
      return kind === "learner" ? data.learners[v] : kind === "interval" ? v[0] : v;
    }) }));
    const numeric = (kind) => !["learner", "text", "interval"].includes(kind || "number");
    const classes = chart.columns.map((c) => (numeric(c.kind) ? "n" : ""));
    const head = sortable(chart, chart.columns.map((c) => c.label), rows, classes, redraw);
    const ends = lines.flatMap((row) => row.filter(Array.isArray)).flat().filter((v) => v !== null);
    const body = rows.map(({ row }) => html("tr", { "data-learner": row[0] }, ...row.map((v, i) => {
      const kind = chart.columns[i].kind || "number";
      if (kind === "learner") return html("th", { scope: "row" }, key(v));
      if (kind === "text") return html("td", { class: v.length > 24 ? "long" : "" }, v);
      if (kind === "share") return html("td", { class: "n" }, v === null ? "–" : `${(100 * v).toFixed(0)}%`);
      if (kind === "interval") return html("td", { class: "interval" }, interval(v, row[1], ends, row[0]), ` ${text(v[0], 3)} to ${text(v[1], 3)}`);
      return html("td", { class: "n" }, Number.isInteger(v) ? whole(v) : text(v, 3));
    })));
    plot.replaceChildren(html("div", { class: "scroll", tabindex: 0 }, html("table", {}, head, html("tbody", {}, ...body))));
  }

  function againstReference(plot, chart, view, section, panel, redraw) {
    const possible = section.learners.filter((i) => panel.rows.some((row) => row[0] === i || row[1] === i));
    const first = possible.filter((i) => panel.rows.filter((r) => r[0] === i || r[1] === i).length === possible.length - 1);
    if (!view.select && first.length > 1) {
      view.select = html("select", { onchange: () => { view.reference = +view.select.value; redraw(); } },
        ...first.map((i) => html("option", { value: i }, data.learners[i])));
      plot.parentElement.querySelector(".controls").append(html("label", {}, "reference", view.select));
    }
    const reference = view.reference ?? first[0] ?? panel.rows[0][0];
    return panel.rows.flatMap(([i, j, mean, low, high, won, count]) => {
      if (i === reference) return [[j, mean, [low, high], won, count]];
      if (j === reference) return [[i, -mean, [-high, -low], 1 - won, count]];
      return [];
    });
  }

  function interval([low, high], mean, ends, learner) {
    const x = linear(Math.min(...ends, 0), Math.max(...ends, 0) || 1e-300, 5, 155);
    return svg("svg", { width: 160, height: 12, viewBox: "0 0 160 12", "aria-hidden": "true" },
      svg("line", { x1: x(0), x2: x(0), y1: 0, y2: 12, class: "frame" }),
      svg("line", { x1: x(low), x2: x(high), y1: 6, y2: 6, style: `stroke:${colour(learner)}`, "stroke-width": 2.5, "stroke-linecap": "round" }),
      svg("path", { d: marker(learner), transform: `translate(${x(mean)},6)`, style: `fill:${colour(learner)}` }));
  }

  // ------------------------------------------------------------------ legends

  function mountLegend(place, section) {
    if (!section.charts.some((chart) => chart.kind !== "none")) { place.remove(); return; }
    const buttons = section.learners.map((i) => {
      const button = html("button", { type: "button", "data-learner": i, title: "Show or hide; with shift: show only this one" },
        swatch(i), data.learners[i]);
      button.addEventListener("click", (event) => {
        if (event.shiftKey) {
          const alone = section.learners.every((j) => shown.hidden.has(j) === (j !== i));
          for (const j of section.learners) if (alone || j === i) shown.hidden.delete(j); else shown.hidden.add(j);
        } else if (!shown.hidden.delete(i)) shown.hidden.add(i);
        redrawAll();
      });
      return button;
    });
    const options = html("div", { class: "options", role: "group", "aria-label": "What the charts show" });
    const option = (label, read, write) => {
      const button = html("button", { type: "button", onclick: () => { write(); redrawAll(); } }, label);
      options.append(button);
      return () => button.setAttribute("aria-pressed", String(read()));
    };
    const states = [];
    if (section.charts.some((c) => c.kind === "lines")) {
      states.push(option("mean", () => shown.centre === "mean", () => { shown.centre = "mean"; }),
        option("median", () => shown.centre === "median", () => { shown.centre = "median"; }),
        option("bands", () => shown.bands, () => { shown.bands = !shown.bands; }));
      if (section.charts.some((c) => c.panels?.some((p) => p.bounds?.length))) {
        states.push(option("bounds", () => shown.bounds, () => { shown.bounds = !shown.bounds; }));
      }
    }
    const every = html("button", { type: "button", class: "every", onclick: () => {
      const none = section.learners.every(visible);
      for (const i of section.learners) if (none) shown.hidden.add(i); else shown.hidden.delete(i);
      redrawAll();
    } }, "all");
    options.append(every);
    place.append(...buttons, options);
    const draw = () => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(visible(+button.dataset.learner)));
      every.textContent = section.learners.every(visible) ? "hide all" : "show all";
      for (const state of states) state();
    };
    redraws.push(draw);
    draw();
  }
  const redrawAll = () => { for (const redraw of redraws) redraw(); };

  for (const place of document.querySelectorAll("section.experiment")) {
    const section = data.sections[+place.dataset.section];
    mountLegend(place.querySelector(".legend"), section);
    for (const figure of place.querySelectorAll("figure.chart")) {
      mount(figure, section, section.charts[+figure.dataset.chart]);
    }
  }
  document.documentElement.dataset.ready = "true";
})();
