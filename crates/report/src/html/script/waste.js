// Views of a profile of wasteful memory operations: the overview with the table of pairs and the flame graphs, and one pair.

function frameName(frame) {
  return frame < 0 ? "all" : DATA.frames[frame].name;
}

/** Whether one instruction at one line made both accesses. */
function isBoth(pair) {
  return pair.first === pair.second && pair.first_instruction === pair.second_instruction;
}

/** `[mov [rax+0x10], rcx]` */
function instructionOf(pair, side) {
  const text = pair[side + "_instruction"];
  return text ? "[" + text + "]" : null;
}

function frameText(frame) {
  const { source, line } = DATA.frames[frame];
  return source ? (source.lines[line - source.from] || "").trim() : "";
}

function wasteOverview(shown) {
  const head = h("section", { class: "head" }, h("h1", { tabindex: "-1" }, DATA.command), paragraphs(DATA.about));
  const samples = h("section", { class: "card" }, h("h2", null, "What became of the samples"), DATA.samples.map((line) => h("p", null, line)));
  if (DATA.nothing) return [head, h("section", { class: "card" }, DATA.nothing.map((line) => h("p", null, line))), samples, notes("Not measured")];
  const lead = (one) => h("li", null, h("p", null, one.pair === null ? one.text : h("a", { href: link({ pair: one.pair + 1 }) }, one.text)));
  const card = leadCard("Waste: look here first", DATA.leads, lead);
  if (DATA.none) card.append(h("p", null, DATA.none));
  return [head, card,
    DATA.pairs.length ? h("section", { class: "card" }, h("h2", null, "Pairs of lines, what a change could save most first"), h("p", { class: "hint" }, DATA.estimates), pairTable(shown),
      DATA.new_objects ? h("p", { class: "hint" }, "New objects: " + DATA.new_objects) : null) : null,
    flameCard(shown),
    h("section", { class: "card" }, h("h2", null, "All samples, by kind"), DATA.kinds.map((line) => h("p", null, line))),
    samples, notes("Not measured, and left out")];
}

/** A line in the table: name, source text, instruction. */
function lineCell(pair, side, href) {
  const frame = pair[side];
  const code = [frameText(frame), instructionOf(pair, side)].filter(Boolean);
  const name = nameOf(frameName(frame));
  return [href ? h("a", { href }, name) : name, code.map((text) => h("code", { class: "where" }, text))];
}

function pairTable(shown) {
  const rows = DATA.pairs.map((pair, at) => ({ pair, at }));
  const columns = [
    { key: "rank", title: "#", of: (r) => r.pair.rank, number: true, cell: (r) => String(r.pair.rank) },
    { key: "kind", title: "Kind", of: (r) => r.pair.words.kind, cell: (r) => [r.pair.words.kind, r.pair.initialising ? h("span", { class: "where" }, "new object") : null] },
    { key: "type", title: "Type", of: (r) => r.pair.type, cell: (r) => h("bdi", null, r.pair.type) },
    { key: "samples", title: "Samples", of: (r) => r.pair.count, number: true, cell: (r) => thousands(r.pair.count) },
    { key: "share", title: "Share", of: (r) => r.pair.share, number: true, cell: (r) => [h("span", { class: "share", "--share": r.pair.share }, r.pair.words.share), h("span", { class: "where" }, r.pair.words.interval)] },
    { key: "first", title: "First line", of: (r) => frameName(r.pair.first), cell: (r) => lineCell(r.pair, "first", link({ pair: r.at + 1 })) },
    { key: "second", title: "Second line", of: (r) => frameName(r.pair.second), cell: (r) => (isBoth(r.pair) ? h("span", { class: "hint" }, "the same") : lineCell(r.pair, "second")) },
  ];
  return table("Pairs of lines", columns, rows, { key: shown.sort || "rank", down: shown.down === "1" }, resort, 100);
}

/** The flame graph of one kind; which one stands in the address. */
function flameCard(shown) {
  const there = DATA.flames.filter((f) => f.nodes.length > 1);
  if (!there.length) return null;
  const first = DATA.pairs.length ? DATA.pairs[0].kind : "";
  const flame = there.find((f) => f.kind === shown.kind) || there.find((f) => f.kind === first) || there[0];
  const choose = (event) => {
    keep({ kind: event.target.value, zoom: null });
    render(false);
    document.querySelector('select[data-key="kind"]').focus();
  };
  const controls = h("div", { class: "controls" }, h("label", null, "Kind ", h("select", { "data-key": "kind", onchange: choose },
    there.map((f) => h("option", { value: f.kind, selected: f === flame }, f.words + "s, " + plural(f.count, "sample", "samples"))))));
  const label = "Flame graph of " + flame.words + "s by their second access";
  return h("section", { class: "card" }, h("h2", null, "Who called the second accesses"),
    h("p", { class: "hint" }, "Of all pairs of this kind but those of new objects: the calling contexts of the access that completed a pair. Shares are of these samples, and estimates."), controls,
    flameGraph(label, flame.nodes, (frame) => (frame < 0 ? "all " + flame.words + "s" : frameName(frame)), flame.count, Number(shown.zoom || 0), (at) => keep({ kind: flame.kind, zoom: at || null })),
    flame.folded ? h("p", { class: "hint" }, plural(flame.folded, "frame is", "frames are") + " not in this page, of at most " + plural(flame.most_folded, "sample", "samples") + " each: these count in their callers.") : null);
}

/** Frames of a context of the page, the outermost first, as [context, frame]. */
function chainOf(context) {
  const chain = [];
  for (let at = context; at >= 0; at = DATA.contexts[at][0]) chain.unshift([at, DATA.contexts[at][1]]);
  return chain;
}

/** The second contexts of a pair as nodes of a flame graph. */
function pairFlame(pair) {
  const nodes = [[-1, -1, 0]];
  const known = new Map();
  for (const [, second, count] of pair.contexts) {
    nodes[0][2] += count;
    let caller = 0;
    for (const [context, frame] of chainOf(second)) {
      if (!known.has(context)) {
        known.set(context, nodes.length);
        nodes.push([caller, frame, 0]);
      }
      caller = known.get(context);
      nodes[caller][2] += count;
    }
  }
  return nodes;
}

/** An access: its line with the source around it, and its instruction. */
function accessPanel(title, pair, side) {
  const frame = DATA.frames[pair[side]];
  const panel = frame.source ? sourcePanel(title, frame.source, [], thousands, (n) => n === frame.line)
    : h("section", { class: "card" }, h("h2", null, title), frame.line ? h("p", { class: "hint" }, "With ", h("code", null, "--source DIR"), " the page has the text of this line.") : null);
  panel.classList.add("half");
  panel.setAttribute("aria-label", title);
  const code = instructionOf(pair, side);
  panel.querySelector("h2").after(h("p", null, nameOf(frame.name)), h("p", null, code ? h("code", null, code) : "The instruction is not known."));
  return panel;
}

function pairView(number, shown) {
  const pair = (DATA.pairs || [])[number - 1];
  if (!pair) return [h("section", { class: "card" }, h("h1", { tabindex: "-1" }, "No such pair in this page"), h("p", null, h("a", { href: "#" }, "All pairs")))];
  const { words } = pair;
  const panels = isBoth(pair) ? [accessPanel("Both accesses", pair, "first")] : [accessPanel("First access", pair, "first"), accessPanel("Second access", pair, "second")];
  const nodes = pairFlame(pair);
  const zoomed = (at) => keep({ zoom: at || null });
  const flame = nodes.length > 1 ? h("section", { class: "card" }, h("h2", null, "Who called the second access"),
    flameGraph("Flame graph of this pair's second accesses", nodes, (frame) => (frame < 0 ? "this pair" : frameName(frame)), nodes[0][2], Number(shown.zoom || 0), zoomed), moreContexts(pair)) : null;
  return [h("section", { class: "head" }, h("p", { class: "crumbs" }, h("a", { href: "#" }, "All pairs"), " / pair " + number),
    h("h1", { tabindex: "-1" }, words.kind + ", ", h("bdi", null, pair.type)),
    h("p", null, h("strong", null, words.share), " (" + words.interval + ") " + words.of + ": an estimate from " + plural(pair.count, "sample", "samples") + ", with its 95\u00a0% interval."),
    h("p", { class: "advice" }, words.hint),
    words.doubt ? h("p", { class: "doubt" }, words.doubt) : null, words.partial ? h("p", { class: "hint" }, words.partial) : null),
  h("div", { class: "beside" }, panels), contextsCard(pair, number, shown), flame];
}

function moreContexts(pair) {
  if (!pair.more) return null;
  const [contexts, samples] = pair.more;
  return h("p", { class: "hint" }, plural(contexts, "more pair of contexts", "more pairs of contexts") + " with " + plural(samples, "sample", "samples") + " not in this page.");
}

/** The two calling contexts beside one another; which pair of them stands in the address. */
function contextsCard(pair, number, shown) {
  if (!pair.contexts.length) return h("section", { class: "card" }, h("h2", null, "Calling contexts"), moreContexts(pair));
  const at = pair.contexts[Number(shown.context) - 1] ? Number(shown.context) - 1 : 0;
  const [first, second] = pair.contexts[at].slice(0, 2).map(chainOf);
  // The access itself is no caller.
  const most = Math.min(first.length, second.length) - 1;
  let both = 0;
  while (both < most && first[both][0] === second[both][0]) both++;
  const choose = (event) => {
    keep({ context: event.target.value });
    render(false);
    document.querySelector('select[data-key="context"]').focus();
  };
  const column = (title, chain) => h("div", { class: "half" }, h("h3", null, title), h("ol", null, chain.map(([, frame], level) =>
    h("li", { class: level < both ? "shared" : null }, level === chain.length - 1 ? h("strong", null, nameOf(frameName(frame))) : nameOf(frameName(frame))))));
  return h("section", { class: "card" }, h("h2", null, "Calling contexts"),
    pair.contexts.length > 1 ? h("div", { class: "controls" }, h("label", null, "Contexts ", h("select", { "data-key": "context", onchange: choose },
      pair.contexts.map(([, , count], one) => h("option", { value: one + 1, selected: one === at }, one + 1 + ": " + plural(count, "sample", "samples")))))) : null,
    h("p", { class: "hint" }, plural(pair.contexts[at][2], "sample", "samples") + " in these two. The outermost caller stands first; " + (both ? "the first " + plural(both, "frame calls", "frames call") + " both accesses." : "no frame calls both accesses.")),
    h("div", { class: "beside contexts" }, column("First access", first), column("Second access", second)), moreContexts(pair));
}
