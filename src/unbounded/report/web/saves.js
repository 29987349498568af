// What a chart gives away: its numbers as CSV, its drawing as an SVG that needs no style sheet.

function saveAs(name, content) {
  const type = name.endsWith(".svg") ? "image/svg+xml" : "text/csv";
  const address = URL.createObjectURL(new Blob([content], { type: `${type};charset=utf-8` }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function commaSeparated(chart, view, plot) {
  const panel = chart.panels[view.panel];
  const same = (v) => (v === null || v === undefined ? "" : v);
  let lines;
  if (chart.kind === "lines" || chart.kind === "dots") {
    const [head, rows] = numbersIn(chart, panel, same, same);
    lines = [head, ...rows];
  } else if (chart.kind === "heat") {
    lines = [["learner", ...panel.columns], ...panel.learners.map((learner, i) => [data.learners[learner], ...panel.heat[i].map(same)])];
  } else { // as it is shown
    lines = [...plot.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent.trim()));
  }
  const cell = (v) => (/[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v);
  const named = Object.entries(panel.keys);
  const all = lines.map((line, i) => [...line, ...named.map(([k, v]) => (i ? v : k))]);
  return all.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "visibility"];
function standalone(drawn) {
  const copy = drawn.cloneNode(true);
  const from = [drawn, ...drawn.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    to[i].setAttribute("style", COPIED.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif");
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}
