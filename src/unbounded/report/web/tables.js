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

// Heads in two rows: what several columns have in common, and below it what differs.
function grouped(head, columns) {
  const [learner, ...cells] = [...head.firstChild.children];
  const kinds = columns.map((name) => name.split(" ")[0]);
  if (new Set(kinds).size === kinds.length) return head;
  learner.rowSpan = 2;
  const [above, below] = [html("tr", {}, learner), html("tr", {})];
  for (let i = 0; i < cells.length;) {
    let end = i + 1;
    while (end < cells.length && kinds[end] === kinds[i]) end += 1;
    if (end === i + 1) { cells[i].rowSpan = 2; above.append(cells[i]); } else {
      above.append(html("th", { scope: "colgroup", class: "common", colspan: end - i }, html("span", {}, kinds[i])));
      for (const [j, cell] of cells.slice(i, end).entries()) {
        cell.firstChild.textContent = columns[i + j].slice(kinds[i].length).replace(/^[ ·]+/, "") || kinds[i];
        cell.firstChild.setAttribute("aria-label", columns[i + j]);
        below.append(cell);
      }
    }
    i = end;
  }
  head.replaceChildren(above, below);
  return head;
}
// What a column is about: of an MDP, "adversary · world".
const about = (column, name) => column.split(" · ")[["adversary", "world"].indexOf(name)];

function drawHeat(plot, chart, view) {
  const panel = chart.panels[view.panel];
  const wanted = (column) => Object.entries(view.only).every(([name, value]) => !value || about(column, name) === value);
  const kept = panel.columns.map((_, j) => j).filter((j) => wanted(panel.columns[j]));
  const columns = kept.map((j) => panel.columns[j]);
  const everything = panel.heat.flat().filter((v) => v !== null);
  const floor = Math.max(Math.min(...everything.map(Math.abs).filter((v) => v > 0)), Math.max(...everything) / 1e4);
  const curve = (v) => (v <= floor ? 0 : Math.log(v / floor));
  const most = Math.max(...everything.map(curve), 1e-9);
  const rows = panel.learners.map((learner, i) => ({ learner, cells: kept.map((j) => panel.heat[i][j]) })).filter((row) => visible(row.learner));
  for (const row of rows) row.values = [data.learners[row.learner], ...row.cells];
  const head = grouped(sortable(chart, ["learner", ...columns], rows, ["who", ...columns.map(() => "what")], () => drawHeat(plot, chart, view)), columns);
  const body = rows.map((row) => html("tr", { "data-learner": row.learner },
    html("th", { scope: "row" }, key(row.learner)),
    ...row.cells.map((v, j) => {
      if (v === null) return html("td", {}, "–");
      const share = Math.round(curve(v) / most * 60); // so that ink is legible on the strongest
      return html("td", { style: `background:color-mix(in oklab, var(--heat) ${share}%, var(--paper))`,
        title: `${data.learners[row.learner]} against ${columns[j]}: ${text(v)}` }, text(v, 3));
    })));
  const heads = [...head.querySelectorAll(".what button")], long = (button) => button.textContent.length > 14;
  for (const button of heads) if (!long(button)) button.classList.add("short");
  plot.replaceChildren(html("div", { class: "scroll", tabindex: 0 },
    html("table", { class: columns.length > 5 && heads.some(long) ? "heat tall" : "heat" }, head, html("tbody", {}, ...body))));
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
    if (kind === "text") return html("td", { class: v.length > 24 ? "long" : "" }, ...linked(v));
    if (kind === "share") return html("td", { class: "n" }, percent(v));
    if (kind === "interval") return html("td", { class: "interval" }, interval(v, row[1], ends, row[0]), ` ${text(v[0], 3)} to ${text(v[1], 3)}`);
    return html("td", { class: "n" }, Number.isInteger(v) ? whole(v) : text(v, 3));
  })));
  plot.replaceChildren(html("div", { class: "scroll", tabindex: 0 }, html("table", {}, head, html("tbody", {}, ...body))));
}

function linked(words) { // what is cited and has an address
  const cited = Object.keys(data.links).find((each) => words.includes(each));
  if (!cited) return [words];
  const [before, after] = [words.slice(0, words.indexOf(cited)), words.slice(words.indexOf(cited) + cited.length)];
  return [...(before ? linked(before) : []), html("a", { href: data.links[cited] }, cited), ...(after ? linked(after) : [])];
}

function againstReference(plot, chart, view, section, panel, redraw) {
  const possible = section.learners.filter((i) => panel.rows.some((row) => row[0] === i || row[1] === i));
  const first = possible.filter((i) => panel.rows.filter((r) => r[0] === i || r[1] === i).length === possible.length - 1);
  if (!view.select && first.length > 1) {
    view.select = html("select", { onchange: () => { view.reference = +view.select.value; redraw(); } },
      ...first.map((i) => html("option", { value: i }, data.learners[i])));
    plot.parentElement.querySelector(".saves").before(html("label", {}, "reference", view.select));
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
    svg("line", { x1: x(low), x2: x(high), y1: 6, y2: 6, style: `stroke:${color(learner)}`, "stroke-width": 2.5, "stroke-linecap": "round" }),
    svg("path", { d: marker(learner), transform: `translate(${x(mean)},6)`, style: `fill:${color(learner)}` }));
}
