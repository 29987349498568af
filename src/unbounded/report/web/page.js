// Draws the charts of a report from the numbers in #report-data. All text goes in as text.
// The other scripts stand before this one, in one function: see page.py.

// ------------------------------------------------------------------ a chart's frame

function mount(figure, section, chart) {
  const plot = figure.querySelector(".plot");
  const controls = figure.querySelector(".controls");
  const view = { panel: chart.start || 0, log: null, reference: null, only: {} };
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
  const save = (form, content) => html("button", { type: "button", "data-save": form, title: `Save as ${form.toUpperCase()}`,
    onclick: () => saveAs(`${section.id}-${chart.view}.${form}`, content()) }, form.toUpperCase());
  const saves = html("span", { class: "saves" }, save("csv", () => commaSeparated(chart, view, plot)));
  if (chart.kind === "lines" || chart.kind === "dots") saves.append(save("svg", () => standalone(plot.querySelector("svg"))));
  controls.append(saves);
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
  section.choosers.push((name, value) => {
    if (chart.kind === "heat" && ["adversary", "world"].includes(name)) { view.only[name] = value; draw(); }
    if (!chart.panels.some((panel) => panel.keys[name] === value)) return;
    view.panel = nearestPanel(name, value);
    settle();
  });
  settle();
  let width = plot.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(plot.clientWidth - width) > 4) { width = plot.clientWidth; draw(); }
  }).observe(plot);
}

function numbersOf(chart, panel) {
  const [head, rows] = numbersIn(chart, panel, (v) => text(v, 5), whole);
  return html("div", { class: "scroll", tabindex: 0 },
    html("table", {},
      html("caption", { class: "aside" }, `${describe(panel)}; from and to: ${chart.band}`),
      html("thead", {}, html("tr", {}, ...head.map((h, i) => html("th", { scope: "col", class: i ? "n" : "" }, h)))),
      html("tbody", {}, ...rows.map((row) => html("tr", {}, ...row.map((c, i) =>
        i ? html("td", { class: "n" }, c) : html("th", { scope: "row" }, c)))))));
}
function numbersIn(chart, panel, number, count) {
  const dots = chart.kind === "dots";
  const median = panel.series.some((s) => s.median && s.median.length);
  const head = ["learner", ...(dots ? [] : [chart.x.label]), dots ? chart.x.label : median ? "mean" : "value",
    ...(median ? ["median"] : []), "from", "to", "replicates", ...(panel.columns ? ["against"] : [])];
  const rows = panel.series.flatMap((s, k) => s.mean.map((m, i) => [
    data.learners[s.learner], ...(dots ? [] : [count(s.x[i])]), number(m), ...(median ? [number(s.median[i])] : []),
    number(s.low[i]), number(s.high[i]), count(s.replicates || 0), ...(panel.columns ? [panel.columns[k]] : [])]));
  return [head, rows];
}
const describe = (panel) => Object.entries(panel.keys).map(([k, v]) => `${k} ${v}`).join(", ");

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
    states.push(option("mean", () => shown.center === "mean", () => { shown.center = "mean"; }),
      option("median", () => shown.center === "median", () => { shown.center = "median"; }),
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
  const chosen = filters(section);
  if (chosen.length) place.append(html("div", { class: "controls filters" }, ...chosen));
  const draw = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(visible(+button.dataset.learner)));
    every.textContent = section.learners.every(visible) ? "hide all" : "show all";
    for (const state of states) state();
  };
  redraws.push(draw);
  draw();
}
// One choice for all charts of a section: what at least two of them can choose from.
function filters(section) {
  const charts = section.charts.filter((chart) => chart.panels);
  const names = [...new Set(charts.flatMap((chart) => chart.panels.flatMap((panel) => Object.keys(panel.keys))))];
  const choices = (chart, name) => [...new Set(chart.panels.flatMap((panel) => (chart.kind === "heat" && panel.keys[name] === undefined
    ? panel.columns.map((column) => about(column, name)) : [panel.keys[name]])))].filter((v) => v !== undefined);
  return names.flatMap((name) => {
    const each = charts.map((chart) => choices(chart, name)), values = [...new Set(each.flat())];
    if (each.filter((own) => own.length > 1).length < 2) return [];
    const select = html("select", { "data-filter": name, onchange: () => { for (const choose of section.choosers) choose(name, select.value); } },
      html("option", { value: "" }, "as chosen below"), ...values.map((value) => html("option", { value }, value)));
    return [html("label", {}, `${name} of all charts`, select)];
  });
}
const redrawAll = () => { for (const redraw of redraws) redraw(); };

for (const place of document.querySelectorAll("section.experiment")) {
  const section = { ...data.sections[+place.dataset.section], id: place.id, choosers: [] };
  mountLegend(place.querySelector(".legend"), section);
  for (const figure of place.querySelectorAll("figure.chart")) {
    mount(figure, section, section.charts[+figure.dataset.chart]);
  }
}
document.documentElement.dataset.ready = "true";
