// Live bytes over time: a line for each line of the application, a point for each snapshot.

/** Round numbers from 0 to at least `most`, in steps of powers of two. */
function ticks(most) {
  let step = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(most, 1))) - 2);
  while (step * 5 < most) step *= 2;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** `series`: [{name, bytes, href}], `times` in milliseconds, `after` in words. */
function plot(series, times, after, label) {
  const box = { width: 860, height: 280, left: 74, right: 16, top: 12, bottom: 34 };
  const most = Math.max(1, ...series.flatMap((s) => s.bytes));
  const marks = ticks(most);
  const high = marks[marks.length - 1];
  const [start, end] = [times[0], times[times.length - 1]];
  const x = (t) => box.left + ((t - start) / Math.max(1, end - start)) * (box.width - box.left - box.right);
  const y = (b) => box.height - box.bottom - (b / high) * (box.height - box.top - box.bottom);
  const grid = marks.map((m) => [svg("line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(m), y2: y(m) }), svg("text", { x: box.left - 8, y: y(m) + 4, "text-anchor": "end" }, size(m))]);
  let free = -Infinity;
  const labels = times.map((t, at) => {
    if (x(t) - free < 64 && at > 0) return null;
    free = x(t);
    return svg("text", { x: x(t), y: box.height - 12, "text-anchor": at === 0 ? "start" : at === times.length - 1 ? "end" : "middle" }, after[at]);
  });
  const lines = series.map((s, at) => svg("g", { class: "series s" + (at % 8) },
    svg("polyline", { points: s.bytes.map((b, i) => x(times[i]).toFixed(1) + "," + y(b).toFixed(1)).join(" ") }),
    s.bytes.map((b, i) => svg("circle", { cx: x(times[i]).toFixed(1), cy: y(b).toFixed(1), r: 3.5 }, svg("title", null, s.name + ": " + size(b) + " after " + after[i])))));
  const legend = h("ul", { class: "legend" }, series.map((s, at) => h("li", { class: "s" + (at % 8) }, h("span", { class: "swatch", "aria-hidden": "true" }), s.href ? h("a", { href: s.href }, nameOf(s.name)) : s.name)));
  const rows = series.map((s) => h("tr", null, h("th", { scope: "row" }, s.name), s.bytes.map((b) => h("td", { class: "number" }, size(b)))));
  return [svg("svg", { class: "plot", viewBox: "0 0 " + box.width + " " + box.height, role: "img", "aria-label": label }, grid, labels, lines), legend,
    h("details", null, h("summary", null, "As a table"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label + ", as a table" }, h("table", null, h("thead", null, h("tr", null, h("td", null), after.map((a) => h("th", { scope: "col", class: "number" }, a)))), h("tbody", null, rows))))];
}
