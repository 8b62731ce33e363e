// Views of a profile of paths: the overview with the table of methods, and one method.

/** A number of a method: an estimate has a ~. */
function numbersOf(method) {
  return method.estimated ? about : thousands;
}

/** The name of a method as a link, what is only shown as a name where it has no detail. */
function methodLink(method, number) {
  const inside = nameOf(method.name);
  return number <= DATA.details.length ? h("a", { href: link({ method: number }) }, inside) : h("span", null, inside);
}

function leadCard(title, leads, item) {
  const first = leads.slice(0, 3).map(item);
  const rest = leads.slice(3).map(item);
  return h("section", { class: "card leads" }, h("h2", null, title),
    first.length ? h("ol", null, first) : null,
    rest.length ? h("details", null, h("summary", null, plural(rest.length, "more finding", "more findings")), h("ol", { start: 4 }, rest)) : null);
}

function pathsOverview(shown) {
  const lead = (one) => {
    const method = DATA.methods[one.method - 1];
    return h("li", null,
      h("p", null, method ? h("a", { href: link({ method: one.method }) }, one.text) : one.text),
      h("p", { class: "advice" }, one.advice),
      method && method.place ? h("p", { class: "where" }, method.place) : null);
  };
  const none = h("p", null, DATA.nothing ? DATA.nothing.join(" ") : "Nothing stands out: no sequence of paths repeats, no loop always goes one way, exceptions are rare. The table says where the iterations are.");
  const card = leadCard("Paths: look here first", DATA.first, lead);
  if (!DATA.first.length) card.append(none);
  return [h("section", { class: "head" }, h("h1", { tabindex: "-1" }, DATA.command), paragraphs(DATA.about)), card,
    DATA.methods.length ? h("section", { class: "card" }, h("h2", null, "Methods by iterations"),
      h("p", { class: "hint" }, "An iteration is one run of an acyclic path: one turn of a loop, or the way out. It is not time."),
      methodTable(shown)) : null,
    notes("Not measured")];
}

function notes(title) {
  const lines = [...(DATA.folded || []), ...(DATA.notes || [])];
  return h("section", { class: "card notes" }, h("h2", null, title), h("ul", null, lines.map((line) => h("li", null, line))));
}

function methodTable(shown) {
  const rows = DATA.methods.map((method, at) => ({ method, number: at + 1 }));
  const most = Math.max(1, ...DATA.methods.slice(0, 1).map((m) => m.iterations));
  const columns = [
    { key: "rank", title: "#", of: (r) => r.number, cell: (r) => String(r.number), number: true },
    { key: "method", title: "Method", of: (r) => r.method.name, cell: (r) => [methodLink(r.method, r.number), h("span", { class: "where" }, r.method.place || "")] },
    { key: "share", title: "Share", of: (r) => r.method.iterations, number: true, cell: (r) => h("span", { class: "share", "--share": r.method.iterations / most }, r.method.words.share) },
    { key: "iterations", title: "Iterations", of: (r) => r.method.iterations, number: true, cell: (r) => r.method.words.iterations },
    { key: "calls", title: "Calls", of: (r) => r.method.activations, number: true, cell: (r) => r.method.words.activations },
    { key: "mean", title: "Per call", of: (r) => r.method.iterations / Math.max(1, r.method.activations), number: true, cell: (r) => r.method.words.mean },
    { key: "paths", title: "Paths ran", of: (r) => r.method.paths_run, number: true, cell: (r) => r.method.words.paths + " of " + r.method.words.of },
    { key: "stands", title: "What stands out", of: (r) => (r.method.stands_out ? 0 : 1), cell: (r) => r.method.stands_out || "" },
  ];
  const sorted = { key: shown.sort || "rank", down: shown.down === "1" };
  return table("Methods by iterations", columns, rows, sorted, (key, down) => resort(key, down), 100);
}

function resort(key, down) {
  keep({ sort: key, down: down ? "1" : null });
  render(false);
  const head = document.querySelector('th[data-key="' + key + '"] button');
  if (head) head.focus();
  say("Sorted by " + key);
}

/** `38 → 86 ×3 → 755` as buttons. */
function chainChips(ids, pick) {
  const chips = [];
  for (const id of ids) {
    const last = chips[chips.length - 1];
    if (last && last.id === id) last.times++;
    else chips.push({ id, times: 1 });
  }
  return h("p", { class: "chips" }, chips.map((chip, at) => [at ? h("span", { class: "then" }, "\u2192") : null,
    h("button", { type: "button", class: "chip", "data-path": chip.id, onclick: () => pick(chip.id), title: "Show path " + chip.id }, chip.id + (chip.times > 1 ? "\u00a0\u00d7" + chip.times : ""))]));
}

/** What a stretch of code is called: lines that run whenever it does and never else, or its bytecode where there are none. */
function blockName(block) {
  if (block.lines.length) return (block.lines.length > 1 ? "lines " : "line ") + ranges(block.lines);
  return "bytecode " + block.bcis[0] + "\u2013" + (block.bcis[1] - 1);
}

function methodView(number, shown) {
  const method = DATA.methods[number - 1];
  const detail = DATA.details[number - 1];
  if (!method || !detail) return [h("section", { class: "card" }, h("h1", { tabindex: "-1" }, "No such method in this page"), h("p", null, h("a", { href: "#" }, "All methods")))];
  const numbers = numbersOf(method);
  const words = detail.words;
  const byId = new Map(detail.paths.map((p, at) => [Number(p.id), { path: p, words: words.paths[at] }]));
  const place = (id) => (byId.has(id) ? byId.get(id).words[4] : "not in the table");
  const views = {};
  const pick = (id) => {
    const same = state().path === String(id);
    keep({ path: same ? null : id });
    choose(same ? null : id);
  };
  const chosenPath = (id) => {
    const found = byId.get(Number(id));
    return id !== null && found ? found.path : null;
  };
  const markButtons = (path) => document.querySelectorAll("[data-path]").forEach((one) => {
      const on = path !== null && one.dataset.path === String(path.id);
      one.classList.toggle("on", on);
      if (one.tagName === "BUTTON") one.setAttribute("aria-pressed", String(on));
    });
  const choose = (id) => {
    const path = chosenPath(id);
    const found = byId.get(Number(id));
    markButtons(path);
    markLines(views.source, path ? path.lines : []);
    if (views.picture) markFlow(views.picture, detail.flow, path);
    views.chosen.replaceChildren(...(path ? [h("span", null, "Shown: path " + path.id + ", " + found.words[4] + ", " + found.words[0] + " times (" + found.words[1] + ") "), h("button", { type: "button", class: "quiet", onclick: () => pick(path.id) }, "show none")] : [h("span", { class: "hint" }, "Choose a path: its lines and its way are set off.")]));
    if (path) say("Path " + path.id + ", " + found.words[4]);
  };
  views.chosen = h("p", { class: "chosen" });
  views.source = sourcePanel(method.place || "Lines", detail.source, detail.lines, numbers);

  const chains = h("section", { class: "card" }, h("h2", null, "What repeats"),
    words.findings.map((text) => h("p", { class: "advice" }, text)),
    detail.chains.map((chain, at) => h("div", { class: "chain" }, chainChips(chain.ids, pick),
      h("div", { class: "cover", "--share": chain.share, "aria-hidden": "true" }),
      words.chains[at].slice(1).map((line) => h("p", null, line)))),
    words.without.map((line) => h("p", null, line)));

  const { flow } = detail;
  let picture = null;
  if (flow.blocks.length) {
    views.picture = flowPicture(flow, numbers, blockName, (block) => markLines(views.source, block.lines));
    const partly = flow.paths < method.paths_run ? "Drawn from the " + plural(flow.paths, "hottest path", "hottest paths") + " of " + thousands(method.paths_run) + " (" + percent(flow.iterations, method.iterations) + " of the iterations). " : "";
    picture = h("section", { class: "card" }, h("h2", null, "Control flow"),
      h("p", { class: "hint" }, partly + "Boxes are stretches of code that ran, named by the lines that run with them and never without; arrows say how often it went on that way. Right: to the next turn of a loop" + (flow.edges.some((e) => e.kind === "exception") ? "; left, dashed: to an exception handler" : "") + "." + (DATA.k < 2 ? " With k = 1 it is not counted which turn follows which." : "") + (method.unfinished ? " Paths that an exception cut short are not in the picture." : "")),
      words.merged.map((line) => h("p", { class: "hint" }, line)),
      h("div", { class: "scroll picture", tabindex: "0", role: "region", "aria-label": "Control flow" }, views.picture), flowTable(flow, numbers, blockName));
  } else if (method.paths_run) {
    picture = h("section", { class: "card" }, h("h2", null, "Control flow"), h("p", { class: "hint" }, "Its paths are too long for a picture; the table has their lines."));
  }

  const tree = detail.trees.length ? h("section", { class: "card" }, h("h2", null, "What follows what"),
    treeView(detail.trees, DATA.k, numbers, pick, place, { root: shown.root, prune: shown.prune }, keep, () => markButtons(chosenPath(state().path || null)))) : null;

  return [h("section", { class: "head" }, h("p", { class: "crumbs" }, h("a", { href: "#" }, "All methods"), " / method " + number),
    h("h1", { tabindex: "-1" }, nameOf(method.name)),
    h("p", null, h("strong", null, method.words.share), " of all iterations: " + method.words.iterations + "; " + words.facts),
    words.doubt ? h("p", { class: "doubt" }, words.doubt) : null, views.chosen),
  h("div", { class: "beside" }, h("div", { class: "wide" }, chains, picture, tree, pathTable(method, detail, pick), apart(detail, pick)), views.source),
  () => choose(shown.path || null)];
}

function pathTable(method, detail, pick) {
  const { words } = detail;
  const row = (p, at) => {
    const [count, share, starts, ends, place] = words.paths[at];
    return h("tr", { "data-path": p.id }, h("td", null, h("button", { type: "button", class: "chip", "data-path": p.id, onclick: () => pick(Number(p.id)) }, p.id)),
      h("td", { class: "number" }, count), h("td", { class: "number" }, h("span", { class: "share", "--share": p.count / Math.max(1, method.iterations) }, share)), h("td", null, starts), h("td", null, ends), h("td", null, place));
  };
  const heads = ["path", "count", "share", "starts at", "ends by", "lines"];
  return h("section", { class: "card" }, h("h2", null, "Paths that ran"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Paths that ran" }, h("table", null, h("caption", { class: "unseen" }, "Paths that ran, the hottest first"),
      h("thead", null, h("tr", null, heads.map((t, at) => h("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, t)))), h("tbody", null, detail.paths.map(row)))),
    words.folded.map((line) => h("p", { class: "hint" }, line)));
}

/** Which lines tell paths of one place apart. */
function apart(detail, pick) {
  if (!detail.groups.length) return null;
  return h("section", { class: "card" }, h("h2", null, "What tells them apart"), detail.groups.map((group) => [h("p", null, group.title),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": group.title }, h("table", { class: "matrix" }, h("caption", { class: "unseen" }, group.title),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "code"), group.paths.map((id) => h("th", { scope: "col" }, h("button", { type: "button", class: "chip", "data-path": id, onclick: () => pick(id) }, String(id)))))),
      h("tbody", null, group.rows.map(([code, takers]) => h("tr", null, h("th", { scope: "row" }, code), takers.map((on) => h("td", null, h("span", { class: on ? "dot on" : "dot", role: "img", "aria-label": on ? "runs it" : "does not" })))))))),
    group.left_out ? h("p", { class: "hint" }, "... and " + plural(group.left_out, "more difference", "more differences")) : null]));
}
