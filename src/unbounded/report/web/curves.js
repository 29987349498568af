// Charts of curves and of dots, and what the pointer reads off them.

// ------------------------------------------------------------------ curves

function drawLines(plot, chart, view) {
  const panel = chart.panels[view.panel];
  const center = (s) => (shown.center === "median" && s.median && s.median.length ? s.median : s.mean);
  const series = panel.series.filter((s) => visible(s.learner));
  const lines = shown.bounds ? (panel.bounds || []).filter((b) => visible(b.learner)) : [];
  const all = [...panel.series.flatMap(center), ...(panel.bounds || []).flatMap((b) => b.y)];
  const log = view.log ?? (chart.y.scale === "auto" ? wantsLog(all) : chart.y.scale === "log");
  view.isLog = log;
  if (view.said) view.said();
  const fits = (v) => v !== null && v !== undefined && (!log || v > 0);

  const every = [...new Set(panel.series.flatMap((s) => s.x))].sort((a, b) => a - b);
  const begin = chart.view === "time" && !log && !view.whole ? parting(panel.series, every, center) : every[0];
  const xs = every.filter((v) => v >= begin);
  const drawn = (s, values) => values.filter((_, i) => s.x[i] >= begin);
  const middles = series.flatMap((s) => drawn(s, center(s))).filter(fits);
  const edges = shown.bands ? series.flatMap((s) => [...drawn(s, s.low), ...drawn(s, s.high)]).filter(fits) : [];
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
  const left = 14 + 7 * Math.max(3, ...yTicks.map((v) => tick(v).length));
  const ends = width >= 520 && series.length <= 10; // whether there is room for names there
  const room = Math.floor(Math.min(24, Math.max(...series.map((s) => data.learners[s.learner].length)), width * 0.03));
  const right = width - (ends && series.length ? 7 * room + 16 : 12);
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
      const there = s.x.map((_, i) => i).filter((i) => s.x[i] >= begin && fits(s.high[i]) && s.low[i] !== null);
      const up = there.map((i) => `${x(s.x[i])},${y(s.high[i])}`);
      const down = there.map((i) => `${x(s.x[i])},${log && s.low[i] <= low ? bottom + 4 : y(s.low[i])}`).reverse();
      if (there.length > 1) group.append(svg("polygon", { class: "band", points: [...up, ...down].join(" "), style: `fill:${color(s.learner)}` }));
    }
  }
  const from = (v) => v === null || v === undefined || v >= begin;
  for (const b of lines) {
    groups.get(b.learner)?.append(svg("path", { class: "bound", d: path(b.x, b.y, x, y, fits, from), style: `stroke:${color(b.learner)}` }));
  }
  for (const s of series) {
    const group = groups.get(s.learner), values = center(s);
    group.append(svg("path", { class: "curve", d: path(s.x, values, x, y, fits, from), style: `stroke:${color(s.learner)}`, "stroke-dasharray": dash(s.learner) }));
    if (s.x.length <= 24) s.x.forEach((v, i) => {
      if (from(v) && fits(values[i])) group.append(svg("path", { class: "point", d: marker(s.learner), transform: `translate(${x(v)},${y(values[i])})`, style: `fill:${color(s.learner)}` }));
    });
  }
  if (ends) {
    const names = series.map((s) => {
      const last = center(s).findLastIndex(fits);
      return { s, at: last < 0 ? null : [x(s.x[last]), y(center(s)[last])] };
    }).filter((one) => one.at);
    apart(names, top, bottom);
    for (const { s, at, line } of names) root.append(svg("text", { class: "name", x: right + 8, y: line + 4, style: `fill:${color(s.learner)}` },
      shortened(data.learners[s.learner], room), svg("title", {}, data.learners[s.learner])));
  }
  const guide = svg("line", { class: "guide", y1: top, y2: bottom, visibility: "hidden" });
  root.append(guide);
  plot.replaceChildren(root);
  if (begin > every[0]) plot.append(html("p", { class: "aside" }, `Before ${whole(begin)} the curves differ by less than a hundredth of what they do later. `,
    html("button", { type: "button", class: "link", onclick: () => { view.whole = true; drawLines(plot, chart, view); } }, "From the beginning")));
  if (!series.length) plot.append(html("p", { class: "aside" }, "No learner is selected."));
  if (above.length) plot.append(html("p", { class: "aside" },
    "Above the axis: " + above.map((b) => `bound of ${data.learners[b.learner]} (${text(Math.min(...b.y), 3)} to ${text(Math.max(...b.y), 3)})`).join(", ") + "."));
  const below = series.some((s) => center(s).some((v) => v !== null && v <= 0));
  if (log && below) plot.append(html("p", { class: "aside" }, "Values that are not positive are not on the logarithmic axis."));

  hover(plot, root, width, height, guide, groups, xs, x, (at) => {
    const rows = [];
    for (const s of series) {
      const i = s.x.indexOf(at);
      if (i < 0) continue;
      const line = lines.find((b) => b.learner === s.learner);
      const j = line ? line.x.indexOf(at) : -1;
      rows.push({ learner: s.learner, value: center(s)[i], low: s.low[i], high: s.high[i],
        bound: j < 0 ? null : line.y[j], y: fits(center(s)[i]) ? y(center(s)[i]) : bottom });
    }
    return { head: `${chart.x.label} = ${whole(at)}`, rows };
  });
}

// The first x from which curves can be told apart: the last before it that is not worth drawing.
function parting(series, xs, center) {
  const spread = xs.map((v) => {
    const there = series.map((s) => center(s)[s.x.indexOf(v)]).filter((m) => m !== null && m !== undefined);
    return there.length > 1 ? Math.max(...there) - Math.min(...there) : 0;
  });
  const most = Math.max(...spread), first = spread.findIndex((d) => d > 0.01 * most);
  return first > 0 && xs.length - first >= 3 ? xs[first] : xs[0];
}
const shortened = (name, room) => (name.length > room ? `${name.slice(0, Math.max(room - 1, 1))}…` : name);
// Lines of text, one for each name: near its place, and not across another.
function apart(names, top, bottom) {
  const each = 14;
  names.sort((a, b) => a.at[1] - b.at[1]);
  names.forEach((one, i) => { one.line = Math.max(one.at[1], i ? names[i - 1].line + each : top); });
  for (let i = names.length - 1, limit = bottom; i >= 0; i--, limit = names[i + 1].line - each) names[i].line = Math.min(names[i].line, limit);
}
function path(xs, ys, x, y, fits, from) {
  let d = "", pen = false;
  xs.forEach((v, i) => {
    if (!from(v) || !fits(ys[i])) { pen = false; return; }
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
    const box = tip.getBoundingClientRect();
    const past = Math.max(box.bottom - window.innerHeight, 0) || Math.min(box.top, 0); // of the window
    if (past) tip.style.top = `${tip.offsetTop - past}px`;
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
  const longest = Math.max(...rows.map((s) => data.learners[s.learner].length), 4);
  const above = 7 * longest + 24 > width * 0.5; // names that have no room beside their dots
  const each = above ? 36 : 22, top = fits(panel.reference) ? 16 : 6, bottom = top + each * Math.max(rows.length, 1) + 4, height = bottom + 40;
  const left = above ? 10 : 7 * longest + 24, right = width - 14;
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
  const label = panel.keys["slope in"] ? `slope in ${panel.keys["slope in"]}` : chart.x.label;
  const half = 3.3 * label.length + 2; // of its width: it may be wider than the axis
  root.append(svg("line", { class: "frame", x1: left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { class: "axis", x: Math.max(Math.min((left + right) / 2, width - half), half), y: height - 6, "text-anchor": "middle" }, label));
  rows.forEach((s, i) => {
    const y = top + each * (i + (above ? 0.75 : 0.5)) + 2, name = data.learners[s.learner];
    const group = svg("g", { class: "learner", "data-learner": s.learner });
    group.append(svg("text", { class: "name", x: above ? 2 : left - 12, y: above ? y - 10 : y + 4, "text-anchor": above ? "start" : "end" },
      above ? shortened(name, Math.floor(width / 7)) : name, svg("title", {}, name)));
    const [m, a, b] = [s.mean[0], s.low[0], s.high[0]];
    if (fits(b) && a !== null) group.append(svg("line", { x1: Math.max(fits(a) ? x(a) : left, left), x2: x(b), y1: y, y2: y,
      style: `stroke:${color(s.learner)}`, "stroke-width": 2.5, "stroke-linecap": "round" }));
    if (fits(m)) group.append(svg("path", { class: "point", d: marker(s.learner, 4.5), transform: `translate(${x(m)},${y})`, style: `fill:${color(s.learner)}` }));
    else group.append(svg("text", { x: left + 4, y: y + 4 }, m === null ? "not defined" : text(m)));
    group.append(svg("rect", { x: 0, y: top + each * i + 2, width, height: each, fill: "transparent" },
      svg("title", {}, `${name}: ${text(m)}, ${chart.band} ${text(a)} to ${text(b)}, ${whole(s.replicates)} replicates` +
        (panel.columns ? `, against ${panel.columns[panel.series.indexOf(s)]}` : ""))));
    root.append(group);
  });
  plot.replaceChildren(root);
}
