// Views of a profile of allocation sites: the overview with plot, treemap and table, and one line.

/** Sums of a line over its parts: {objects: [...], bytes: [...]} by snapshot. */
function lineTotals(line) {
  const parts = line.others ? [...line.parts, line.others] : line.parts;
  const sum = (field) => DATA.snapshots.map((_, at) => parts.reduce((total, p) => total + p[field][at], 0));
  return { objects: sum("objects"), bytes: sum("bytes") };
}

let totals = null;
/** Of all lines, computed once. */
function allTotals() {
  totals = totals || (DATA.lines || []).map(lineTotals);
  return totals;
}

/** The snapshots that are compared: positions in the list; `from` is null where there is nothing to compare with. */
function compared(shown) {
  const at = (number) => DATA.snapshots.findIndex((s) => String(s.number) === number);
  const to = at(shown.snapshot) >= 0 ? at(shown.snapshot) : DATA.last;
  const first = at(shown.from) >= 0 ? at(shown.from) : DATA.first;
  return { to, from: first !== null && first !== undefined && first < to ? first : null };
}

function lineName(line) {
  return line.name + (line.of_application ? "" : ", caller not known");
}

function sitesOverview(shown) {
  const head = h("section", { class: "head" }, h("h1", { tabindex: "-1" }, DATA.command), paragraphs(DATA.about), paragraphs(DATA.doubt));
  if (DATA.nothing) return [head, h("section", { class: "card" }, DATA.nothing.map((line) => h("p", null, line))), notes("Not marked")];
  const lead = (one) => h("li", null, h("p", null, one.line === null || one.line >= DATA.lines.length ? one.text : h("a", { href: link({ line: one.line + 1 }) }, one.text)));
  const card = leadCard("Allocation sites: look here first", DATA.leads, lead);
  if (!DATA.leads.length) card.append(h("p", null, DATA.first === null ? "No line has live objects." : "The heap did not grow between the first snapshot and the last."));
  const { to, from } = compared(shown);
  const now = DATA.snapshots[to];
  const choice = (label, key, chosen, none) => h("label", null, label + " ", h("select", { onchange: (event) => recompare(key, event.target.value), "data-key": key },
    none ? h("option", { value: "0", selected: chosen === null }, "nothing") : null,
    DATA.snapshots.map((s, at) => (none && at >= to ? null : h("option", { value: s.number, selected: at === chosen }, s.number + ": " + s.cause + " after " + s.after)))));
  const controls = DATA.snapshots.length > 1 ? h("div", { class: "controls" }, choice("Snapshot", "snapshot", to), choice("compared with", "from", from, true)) : null;
  const grew = from === null ? null : now.live_bytes - DATA.snapshots[from].live_bytes;
  const heap = h("p", null, h("strong", null, size(now.live_bytes)), " in " + plural(now.live_objects, "object", "objects") + " " + now.cause + " after " + now.after + (now.live_only ? "" : ", dead ones included") +
    (grew === null ? "" : "; " + signed(grew, size) + " since snapshot " + DATA.snapshots[from].number) + ". " + percent(now.with_site_bytes, now.live_bytes) + " of the bytes have a site, " + percent(now.with_app_bytes, now.live_bytes) + " a line of the application.");
  return [head, card,
    DATA.snapshots.length > 1 ? h("section", { class: "card" }, h("h2", null, "Growth"), growthPlot()) : null,
    h("section", { class: "card" }, h("h2", null, "Live bytes by line and type"), controls, heap, linesMap(to, from)),
    h("section", { class: "card" }, h("h2", null, "Lines"), lineTable(shown, to, from)),
    unknownCard(now), notes("Not marked, and left out")];
}

function recompare(key, number) {
  keep({ [key]: number });
  render(false);
  const select = document.querySelector('select[data-key="' + key + '"]');
  if (select) select.focus();
}

/** The lines that changed most, and all others as one. */
function growthPlot() {
  const change = (t) => Math.max(...t.bytes) - t.bytes[0];
  const order = allTotals().map((t, at) => [t, at]).sort(([a], [b]) => change(b) - change(a)).slice(0, 7).filter(([t]) => Math.max(...t.bytes) > 0);
  const series = order.map(([t, at]) => ({ name: DATA.lines[at].name, bytes: t.bytes, href: link({ line: at + 1 }) }));
  const rest = DATA.snapshots.map((s, at) => s.live_bytes - series.reduce((sum, one) => sum + one.bytes[at], 0));
  series.push({ name: "all else", bytes: rest.map((b) => Math.max(0, b)) });
  return plot(series, DATA.snapshots.map((s) => s.after_ms), DATA.snapshots.map((s) => s.after), "Live bytes at each snapshot by line");
}

function linesMap(to, from) {
  const all = allTotals();
  const growth = (t) => (from === null ? 0 : t.bytes[to] - t.bytes[from]);
  const most = Math.max(1, ...all.map(growth));
  const order = all.map((t, at) => [t, at]).sort(([a], [b]) => b.bytes[to] - a.bytes[to]);
  const shown = order.slice(0, 40).filter(([t]) => t.bytes[to] > 0);
  const groups = shown.map(([t, at]) => {
    const line = DATA.lines[at];
    const grew = growth(t);
    const parts = line.parts.map((p) => ({ name: p.type, value: p.bytes[to], title: p.type + ": " + size(p.bytes[to]) + " in " + plural(p.objects[to], "object", "objects") }));
    if (line.others) parts.push({ name: "others", value: line.others.bytes[to], title: "others: " + size(line.others.bytes[to]) });
    return { name: line.name, value: t.bytes[to], parts, href: link({ line: at + 1 }), class: grew > 0 ? "grew" : "", share: Math.max(0, grew) / most,
      title: lineName(line) + ": " + size(t.bytes[to]) + (from === null ? "" : ", " + signed(grew, size)) };
  });
  const now = DATA.snapshots[to];
  const sum = (list) => list.reduce((total, one) => total + one.value, 0);
  const unknown = now.unknown.map((u) => ({ name: u.reason, value: u.bytes, title: u.words + ": " + size(u.bytes) }));
  if (sum(unknown) > 0) groups.push({ name: "no site known", value: sum(unknown), parts: unknown, class: "unknown", share: 0, title: "no site known: " + size(sum(unknown)) });
  const rest = now.live_bytes - sum(groups);
  if (rest > 0) groups.push({ name: "all else", value: rest, parts: [], class: "unknown", share: 0, title: "all other lines: " + size(rest) });
  groups.sort((a, b) => b.value - a.value);
  return [treemap(groups, 1100, 400, "Live bytes by line and type"), from === null ? null : h("p", { class: "hint" }, "The more red, the more it grew.")];
}

function lineTable(shown, to, from) {
  const all = allTotals();
  const heap = DATA.snapshots[to].live_bytes;
  const rows = DATA.lines.map((line, at) => ({ line, at, t: all[at], grew: from === null ? 0 : all[at].bytes[to] - all[at].bytes[from] }));
  const most = Math.max(1, ...rows.map((r) => r.t.bytes[to]));
  const main = (r) => r.line.parts.reduce((best, p) => (!best || p.bytes[to] > best.bytes[to] ? p : best), null);
  const columns = [
    { key: "line", title: "Line", of: (r) => r.line.name, cell: (r) => [h("a", { href: link({ line: r.at + 1 }) }, nameOf(r.line.name)), r.line.of_application ? null : h("span", { class: "where" }, "caller not known"), r.line.source ? h("code", { class: "where" }, lineText(r.line)) : null] },
    { key: "bytes", title: "Live bytes", of: (r) => r.t.bytes[to], number: true, cell: (r) => h("span", { class: "share", "--share": r.t.bytes[to] / most }, size(r.t.bytes[to])) },
    { key: "share", title: "Of heap", of: (r) => r.t.bytes[to], number: true, cell: (r) => percent(r.t.bytes[to], heap) },
    from === null ? null : { key: "grew", title: "Grew by", of: (r) => r.grew, number: true, cell: (r) => h("span", { class: r.grew > 0 ? "more" : "" }, signed(r.grew, size)) },
    { key: "objects", title: "Objects", of: (r) => r.t.objects[to], number: true, cell: (r) => thousands(r.t.objects[to]) },
    { key: "type", title: "Mostly", of: (r) => (main(r) ? main(r).type : ""), cell: (r) => h("bdi", null, main(r) ? main(r).type : "") },
  ].filter(Boolean);
  const key = shown.sort || (from === null ? "bytes" : "grew");
  const down = shown.sort ? shown.down === "1" : true;
  const rest = DATA.rest ? h("p", { class: "hint" }, plural(DATA.rest.count, "other line", "other lines") + ": " + size(DATA.rest.bytes[to])) : null;
  return [table("Lines with live objects", columns, rows.filter((r) => r.t.bytes[to] > 0 || r.grew !== 0), { key, down }, resort, 100), rest];
}

/** The text of the line itself. */
function lineText(line) {
  return (line.source.lines[line.line - line.source.from] || "").trim();
}

function unknownCard(now) {
  if (!now.unknown.length) return null;
  return h("section", { class: "card" }, h("h2", null, "Not known"), h("p", null, percent(now.live_bytes - now.with_site_bytes, now.live_bytes) + " of the bytes have no site:"),
    h("ul", null, now.unknown.map((u) => h("li", null, percent(u.bytes, now.live_bytes) + " (" + size(u.bytes) + " in " + plural(u.objects, "object", "objects") + "): " + u.words + (u.types.length ? "; most of it " + u.types.join(", ") : "")))));
}

function lineView(number, shown) {
  const line = (DATA.lines || [])[number - 1];
  if (!line) return [h("section", { class: "card" }, h("h1", { tabindex: "-1" }, "No such line in this page"), h("p", null, h("a", { href: "#" }, "All lines")))];
  const { to, from } = compared(shown);
  const t = allTotals()[number - 1];
  const parts = [...line.parts, ...(line.others ? [Object.assign({ type: plural(line.others.count, "more type or site", "more types and sites"), site: null }, line.others)] : [])];
  const row = (p) => h("tr", null, h("th", { scope: "row" }, h("bdi", null, p.type)), h("td", null, p.site || "here"), h("td", { class: "number" }, size(p.bytes[to])), h("td", { class: "number" }, thousands(p.objects[to])),
    from === null ? null : [h("td", { class: "number" }, signed(p.bytes[to] - p.bytes[from], size)), h("td", { class: "number" }, signed(p.objects[to] - p.objects[from], thousands))]);
  const heads = ["type", "allocated in", "live bytes", "objects", ...(from === null ? [] : ["grew by", "objects"])];
  const about = DATA.leads.filter((one) => one.line === number - 1).map((one) => h("p", { class: "advice" }, one.text));
  const series = line.parts.slice(0, 6).map((p) => ({ name: p.type, bytes: p.bytes }));
  const source = line.source ? sourcePanel(line.source_file + ":" + line.line, line.source, [], thousands, (n) => n === line.line) : null;
  return [h("section", { class: "head" }, h("p", { class: "crumbs" }, h("a", { href: "#" }, "All lines"), " / line " + number), h("h1", { tabindex: "-1" }, nameOf(line.name)),
    h("p", null, h("strong", null, size(t.bytes[to])), " in " + plural(t.objects[to], "live object", "live objects") + ", " + percent(t.bytes[to], DATA.snapshots[to].live_bytes) + " of the heap" + (from === null ? "" : "; " + signed(t.bytes[to] - t.bytes[from], size) + " since snapshot " + DATA.snapshots[from].number)),
    line.of_application ? null : h("p", { class: "doubt" }, "A line of the JDK: the line of the application that led to it is not known.")),
  h("div", { class: "beside" }, h("div", { class: "wide" }, h("section", { class: "card" }, h("h2", null, "What it allocated"), about,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Types" }, h("table", null, h("caption", { class: "unseen" }, "Types allocated for this line"), h("thead", null, h("tr", null, heads.map((title, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, title)))), h("tbody", null, parts.map(row))))),
  DATA.snapshots.length > 1 ? h("section", { class: "card" }, h("h2", null, "Growth"), plot(series, DATA.snapshots.map((s) => s.after_ms), DATA.snapshots.map((s) => s.after), "Live bytes at each snapshot by type")) : null), source)];
}
