// What every chart needs: elements, the looks of learners, numbers as text, scales.

const data = JSON.parse(document.querySelector("script#report-data").textContent);
const shown = { hidden: new Set(), center: "mean", bands: true, bounds: true };
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

const COLORS = 7;
const DASHES = ["", "8 4", "2 4", "10 3 2 3"];
const MARKERS = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
  (r) => `M0,${-1.3 * r}L${1.2 * r},${r}H${-1.2 * r}Z`,
  (r) => `M0,${-1.4 * r}L${1.4 * r},0L0,${1.4 * r}L${-1.4 * r},0Z`,
  (r) => `M0,${1.3 * r}L${1.2 * r},${-r}H${-1.2 * r}Z`,
];
const color = (i) => `var(--c${data.looks[i] % COLORS})`;
const dash = (i) => DASHES[data.looks[i] % DASHES.length]; // not by color alone
const marker = (i, r = 3) => MARKERS[data.looks[i] % MARKERS.length](r);
const swatch = (i) =>
  svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
    svg("path", { d: "M1,6H25", class: "curve", style: `stroke:${color(i)}`, "stroke-dasharray": dash(i) }),
    svg("path", { d: marker(i, 3.2), transform: "translate(13,6)", style: `fill:${color(i)}` }));
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
function percent(share) { // a few of many replicates are not none
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.001) return "<0.1%";
  if (share < 1 && share > 0.999) return ">99.9%";
  return `${(100 * share).toFixed((share > 0 && share < 0.01) || (share < 1 && share > 0.99) ? 1 : 0)}%`;
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
