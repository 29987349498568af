// The heat map, tables that can be sorted, and pairs of learners.

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
