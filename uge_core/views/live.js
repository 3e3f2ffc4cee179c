// Draws one series' measured points and follows the slider. Every word is set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

function make(parent, name, attributes, text) {
  const element = name === "dl" || name === "dt" || name === "dd" || name === "div" || name === "span"
    ? document.createElement(name)
    : document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function scales(data) {
  const all = data.points.map((p) => p.at).concat(data.others.map((o) => [o[0], o[1]]));
  const range = (axis) => {
    const values = all.map((p) => p[axis]);
    const low = Math.min(...values), high = Math.max(...values);
    const pad = 0.12 * Math.max(high - low, 0.02);
    return [low - pad, high + pad];
  };
  const [left, right] = range(0), [bottom, top] = range(1);
  return [
    (x) => 44 + ((x - left) / (right - left)) * 360,
    (y) => 200 - ((y - bottom) / (top - bottom)) * 185,
    [left, right, bottom, top],
  ];
}

// Where a name stands clear of marks, of other names and of the frame: left, right, above or below; nowhere is null.
function free(x, y, width, taken) {
  const spots = [[x - 8 - width, y - 8], [x + 8, y - 8], [x - width / 2, y - 24], [x - width / 2, y + 8]];
  for (const [left, top] of spots) {
    const inside = left >= 46 && left + width <= 418 && top >= 0 && top <= 184;
    const clear = taken.every(([a, b, w, h]) => left + width < a || left > a + w || top + 14 < b || top > b + h);
    if (inside && clear) {
      taken.push([left, top, width, 14]);
      return [left, top];
    }
  }
  return null;
}

function background(svg, data) {
  svg.replaceChildren();
  const [x, y, [left, right, bottom, top]] = scales(data);
  make(svg, "line", { x1: 44, y1: 200, x2: 404, y2: 200, stroke: "currentColor" });
  make(svg, "line", { x1: 44, y1: 15, x2: 44, y2: 200, stroke: "currentColor" });
  make(svg, "text", { x: 44, y: 216 }, left.toFixed(2));
  make(svg, "text", { x: 404, y: 216, "text-anchor": "end" }, right.toFixed(2));
  make(svg, "text", { x: 40, y: 200, "text-anchor": "end" }, bottom.toFixed(2));
  make(svg, "text", { x: 40, y: 24, "text-anchor": "end" }, top.toFixed(2));
  make(svg, "text", { x: 224, y: 234, "text-anchor": "middle" }, data.across);
  make(svg, "text", { x: 50, y: 13 }, data.up);
  const marks = data.points.map((p) => p.at).concat(data.others).map(([a, b]) => [x(a) - 6, y(b) - 6, 12, 12]);
  const taken = [...marks, [46, 0, 7 * data.up.length, 18]];
  for (const [value, ndcg, name] of data.others) {
    const mark = make(svg, "circle", { cx: x(value), cy: y(ndcg), r: 4, fill: "none", stroke: "currentColor" });
    make(mark, "title", {}, name);
    const place = free(x(value), y(ndcg), 6.6 * name.length, taken);
    if (place) make(svg, "text", { x: place[0], y: place[1] + 12 }, name);
  }
  const path = data.points.map((p) => `${x(p.at[0])},${y(p.at[1])}`).join(" ");
  make(svg, "polyline", { points: path, fill: "none", stroke: data.color, "stroke-width": 2 });
  for (const p of data.points) make(svg, "circle", { cx: x(p.at[0]), cy: y(p.at[1]), r: 4, fill: data.color });
  const cross = make(svg, "path", { stroke: data.color, "stroke-width": 2, fill: "none" });
  const ring = make(svg, "circle", { r: 10, fill: "none", stroke: "currentColor", "stroke-width": 3 });
  return [x, y, ring, cross];
}

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".live");
  const input = root.querySelector("input");
  const svg = root.querySelector("svg");
  const [x, y, ring, cross] = background(svg, data);
  input.max = data.points.length - 1;
  root.querySelector(".ticks").replaceChildren();
  for (const p of data.points) make(root.querySelector(".ticks"), "span", {}, String(p.lam));

  const show = () => {
    const p = data.points[Number(input.value)];
    root.querySelector("output").textContent = String(p.lam);
    input.setAttribute("aria-valuetext", `λ ${p.lam}. ${p.figures.map((f) => `${f[0]} ${f[1]}`).join(", ")}`);
    ring.setAttribute("cx", x(p.at[0]));
    ring.setAttribute("cy", y(p.at[1]));
    const [left, right, low, high] = p.ends;
    const across = left === null ? "" : `M${x(left)},${y(p.at[1])}H${x(right)}`;
    const up = low === null ? "" : `M${x(p.at[0])},${y(low)}V${y(high)}`;
    cross.setAttribute("d", across + up);
    svg.setAttribute("aria-label", `${data.series} at λ ${p.lam}. ${p.sentence}`);
    const figures = root.querySelector(".figures");
    figures.replaceChildren();
    for (const [name, value, rest, change] of p.figures) {
      const list = make(figures, "dl", {});
      make(list, "dt", {}, name);
      make(list, "dd", { class: "value" }, value);
      make(list, "dd", { class: "rest" }, change ? `${change} from no debiasing` : "");
      make(list, "dd", { class: "rest" }, rest);
    }
    root.querySelector(".sentence").textContent = p.sentence;
  };
  // A rerun must not take the slider out of a hand that holds it.
  if (root.dataset.held !== "yes") input.value = data.chosen;
  show();
  input.oninput = () => {
    root.dataset.held = "yes";
    show();
  };
  input.onchange = () => {
    root.dataset.held = "no";
    setStateValue("lam", data.points[Number(input.value)].lam);
  };
}
