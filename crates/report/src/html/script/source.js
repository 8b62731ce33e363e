// The lines of a method with how many iterations touch each, and their text if `--source` found it.

/** `marked`: of a line number whether it is set off at the start. */
function sourcePanel(title, source, weights, numbers, marked) {
  const most = Math.max(1, ...weights.map((w) => w[1]));
  const weight = new Map(weights);
  const lines = source ? source.lines.map((text, at) => [source.from + at, text]) : weights.map((w) => [w[0], null]);
  const rows = lines.map(([line, text]) => {
    const count = weight.get(line);
    return h("tr", { "data-line": line, class: marked && marked(line) ? "on" : null, "--share": count ? Math.max(0.02, count / most) : 0 },
      h("td", { class: "number line" }, String(line)),
      weights.length ? h("td", { class: "number count" }, count === undefined ? "" : numbers(count)) : null,
      source ? h("td", { class: "text" }, h("code", null, text || " ")) : h("td", { class: "text bar" }, count === undefined ? "" : ""));
  });
  const hint = source ? null : h("p", { class: "hint" }, "With ", h("code", null, "--source DIR"), " the page has the text of these lines.");
  return h("section", { class: "card source", "aria-label": "Source lines" },
    h("h2", null, title),
    weights.length ? h("p", { class: "hint" }, "Beside each line: how many iterations touch it.") : null,
    rows.length ? h("div", { class: "scroll code", tabindex: "0", role: "region", "aria-label": title },
      h("table", null, h("caption", { class: "unseen" }, title), h("thead", { class: "unseen" }, h("tr", null, h("th", { scope: "col" }, "line"), weights.length ? h("th", { scope: "col" }, "iterations") : null, h("th", { scope: "col" }, "text"))), h("tbody", null, rows)))
      : h("p", { class: "hint" }, "The class has no line numbers."), hint);
}

/** Sets lines off and brings the first of them into sight within the panel. */
function markLines(panel, lines) {
  const wanted = new Set(lines);
  let first = null;
  for (const row of panel.querySelectorAll("tr[data-line]")) {
    const on = wanted.has(Number(row.dataset.line));
    row.classList.toggle("on", on);
    if (on && !first) first = row;
  }
  const box = first && first.closest(".scroll");
  if (box) box.scrollTop = Math.max(0, first.offsetTop - box.clientHeight / 3);
}
