// Search in everything that the page holds.

const HITS = 100;

/** Everything that can be found: {kind, text, node(), href}. Made at the first search. */
let index = null;
function searchable() {
  const all = [];
  const add = (kind, text, href, node) => all.push({ kind, low: text.toLowerCase(), text, href, node });
  if (DATA.lens === "paths") {
    (DATA.methods || []).forEach((m, at) => add("Methods", m.name + " " + (m.place || ""), at < DATA.details.length ? link({ method: at + 1 }) : null, () => [nameOf(m.name), h("span", { class: "where" }, " " + (m.place || "") + " " + m.words.share)]));
    (DATA.details || []).forEach((d, at) => {
      d.words.findings.forEach((text) => add("Findings", text, link({ method: at + 1 }), () => [text, h("span", { class: "where" }, " " + DATA.methods[at].name)]));
      if (d.source) d.source.lines.forEach((text, line) => add("Source lines", text, link({ method: at + 1 }), () => [h("code", null, text.trim()), h("span", { class: "where" }, " " + (DATA.methods[at].source_file || "") + ":" + (d.source.from + line))]));
    });
  }
  (DATA.lines || []).forEach((line, at) => {
    const href = link({ line: at + 1 });
    add("Lines", lineName(line), href, () => nameOf(line.name));
    line.parts.forEach((p) => add("Types", p.type + " " + (p.site || ""), href, () => [h("bdi", null, p.type), h("span", { class: "where" }, " from " + line.name + (p.site ? ", in " + p.site : ""))]));
    if (line.source) add("Source lines", lineText(line), href, () => [h("code", null, lineText(line)), h("span", { class: "where" }, " " + line.name)]);
  });
  const callers = new Set();
  const texts = new Set();
  (DATA.pairs || []).forEach((pair, at) => {
    const href = link({ pair: at + 1 });
    const names = isBoth(pair) ? [pair.first] : [pair.first, pair.second];
    const { words } = pair;
    add("Pairs", [words.kind, pair.type, ...names.map(frameName), words.hint].join(" "), href, () => [words.kind + ", " + pair.type + ": ", names.map((frame, side) => [side ? " and " : "", nameOf(frameName(frame))]), h("span", { class: "where" }, " " + words.share)]);
    for (const frame of names.filter((one) => frameText(one) && !texts.has(one))) {
      texts.add(frame);
      add("Source lines", frameText(frame), href, () => [h("code", null, frameText(frame)), h("span", { class: "where" }, " " + frameName(frame))]);
    }
    // A caller leads to the first pair in whose contexts it stands.
    for (const context of pair.contexts.flatMap(([first, second]) => [first, second])) {
      for (let one = DATA.contexts[context][0]; one >= 0 && !callers.has(one); one = DATA.contexts[one][0]) {
        callers.add(one);
        const frame = DATA.contexts[one][1];
        if (callers.has("frame " + frame)) continue;
        callers.add("frame " + frame);
        add("Callers", frameName(frame), href, () => [nameOf(frameName(frame)), h("span", { class: "where" }, " calls " + frameName(pair.second))]);
      }
    }
  });
  [...(DATA.notes || []), ...(DATA.folded || [])].forEach((text) => add("Notes", text, null, () => text));
  return all;
}

function searchView(query) {
  index = index || searchable();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = index.filter((one) => words.every((word) => one.low.includes(word)));
  const kinds = [...new Set(found.map((one) => one.kind))];
  say(plural(found.length, "hit", "hits"));
  return [h("section", { class: "head" }, h("h1", { tabindex: "-1" }, plural(found.length, "hit", "hits") + " for \u201c", h("bdi", null, query), "\u201d")),
    kinds.map((kind) => {
      const hits = found.filter((one) => one.kind === kind);
      return h("section", { class: "card" }, h("h2", null, kind + " (" + thousands(hits.length) + ")"),
        h("ul", { class: "hits" }, hits.slice(0, HITS).map((one) => h("li", null, one.href ? h("a", { href: one.href }, one.node()) : one.node()))),
        hits.length > HITS ? h("p", { class: "hint" }, "... and " + thousands(hits.length - HITS) + " more: add a word") : null);
    }), found.length ? null : h("p", null, "All words must be in a name, a type or a source line of this page.")];
}
