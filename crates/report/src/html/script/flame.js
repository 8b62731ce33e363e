// A flame graph: each frame as wide as it has samples, below its caller. Drawn as a tree that keys walk through; a chosen frame takes the whole width.

const FLAME = { width: 1100, row: 20, least: 0.5 };

/** `nodes`: [[caller, frame, samples], ...], callers first, the root without one. What is drawn where the frame `zoom` has the whole width. */
function flameBoxes(nodes, zoom) {
  const callees = nodes.map(() => []);
  nodes.forEach((node, at) => at > 0 && callees[node[0]].push(at));
  callees.forEach((list) => list.sort((a, b) => nodes[b][2] - nodes[a][2] || a - b));
  const callers = [];
  for (let at = nodes[zoom][0]; at >= 0; at = nodes[at][0]) callers.unshift(at);
  const boxes = callers.map((at, level) => ({ at, level, x: 0, w: FLAME.width }));
  const scale = FLAME.width / Math.max(1, nodes[zoom][2]);
  let narrow = 0;
  const waiting = [{ at: zoom, level: callers.length, x: 0, w: FLAME.width }];
  while (waiting.length) {
    const box = waiting.pop();
    boxes.push(box);
    let x = box.x;
    const below = [];
    for (const at of callees[box.at]) {
      const w = nodes[at][2] * scale;
      if (w >= FLAME.least) below.push({ at, level: box.level + 1, x, w });
      else narrow++;
      x += w;
    }
    waiting.push(...below.reverse());
  }
  return { boxes, narrow };
}

/** `label`: what it is of; `name(frame)`; `whole`: answered samples, for shares; `zoom`: the chosen frame of the address; `onzoom(at)` keeps it. */
function flameGraph(label, nodes, name, whole, zoom, onzoom) {
  const words = (at) => name(nodes[at][1]) + ": " + plural(nodes[at][2], "sample", "samples") + ", " + percent(nodes[at][2], whole);
  const box = h("div", { class: "scroll picture", tabindex: "0", role: "region", "aria-label": label });
  const told = h("p", { class: "chosen where" });
  const hint = h("p", { class: "hint" });
  const back = h("button", { type: "button", class: "quiet", onclick: () => go(0) }, "Whole graph");
  let chosen = nodes[zoom] ? zoom : 0;
  let boxes = [];
  const go = (at) => {
    chosen = at;
    draw(at);
    focusOn(at);
    onzoom(at);
    say(at ? "Zoomed to " + words(at) : "The whole graph");
  };
  const element = (at) => box.querySelector('[data-node="' + at + '"]');
  const focusOn = (at) => {
    const to = element(at);
    if (!to) return;
    box.querySelectorAll('[tabindex="0"]').forEach((one) => one.setAttribute("tabindex", "-1"));
    to.setAttribute("tabindex", "0");
    to.focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const step = (at, key) => {
    const here = boxes.find((one) => one.at === at);
    const row = boxes.filter((one) => one.level === here.level).sort((a, b) => a.x - b.x);
    const place = row.indexOf(here);
    const below = boxes.filter((one) => one.level === here.level + 1 && nodes[one.at][0] === at).sort((a, b) => a.x - b.x);
    const to = { ArrowUp: boxes.find((one) => one.at === nodes[at][0]), ArrowDown: below[0], ArrowLeft: row[place - 1], ArrowRight: row[place + 1], Home: boxes.find((one) => one.at === 0) }[key];
    if (to) focusOn(to.at);
  };
  const onkey = (event) => {
    const one = event.target.closest("[data-node]");
    if (!one) return;
    const at = Number(one.dataset.node);
    if (event.key === "Enter" || event.key === " ") go(at);
    else if (event.key === "Escape") go(0);
    else if (/^(Arrow|Home)/.test(event.key)) step(at, event.key);
    else return;
    event.preventDefault();
  };
  const tell = (event) => {
    const one = event.target.closest("[data-node]");
    if (one) told.textContent = clean(words(Number(one.dataset.node)));
  };
  const draw = (tabbed) => {
    const drawn = flameBoxes(nodes, chosen);
    boxes = drawn.boxes;
    const innermost = new Set(nodes.map((_, at) => at));
    nodes.forEach((node) => innermost.delete(node[0]));
    const items = boxes.map((one) => {
      const full = name(nodes[one.at][1]);
      return svg("g", { class: "box" + (innermost.has(one.at) ? " last" : "") + (one.at === chosen && chosen ? " on" : ""), role: "treeitem", "aria-level": one.level + 1, "aria-label": words(one.at), "aria-current": one.at === chosen ? "true" : null,
        tabindex: one.at === tabbed ? "0" : "-1", "data-node": one.at, "--share": nodes[one.at][2] / Math.max(1, nodes[0][2]), onclick: () => go(one.at) },
      svg("title", null, words(one.at)),
      svg("rect", { x: one.x.toFixed(2), y: one.level * FLAME.row + 1, width: Math.max(FLAME.least, one.w - 1).toFixed(2), height: FLAME.row - 2, rx: 2 }),
      one.w > 40 ? svg("text", { x: (one.x + 4).toFixed(2), y: one.level * FLAME.row + 14 }, short(full.slice(packageEnd(full)), Math.floor((one.w - 6) / (innermost.has(one.at) ? 7.9 : 6.8)))) : null);
    });
    const rows = Math.max(...boxes.map((one) => one.level)) + 1;
    box.replaceChildren(svg("svg", { class: "flame", viewBox: "0 0 " + FLAME.width + " " + rows * FLAME.row, role: "tree", "aria-label": label, onkeydown: onkey, onmouseover: tell, onfocusin: tell }, items));
    told.textContent = clean(words(chosen));
    back.hidden = chosen === 0;
    hint.textContent = "The width is the share of samples; below a frame stands what it called. Choose a frame to widen it; arrow keys go from frame to frame, Enter widens, Escape shows the whole." +
      (drawn.narrow ? " " + plural(drawn.narrow, "frame is", "frames are") + " too narrow to be drawn, with what they called: widen a caller." : "");
  };
  draw(chosen);
  return [hint, h("div", { class: "controls" }, back), box, told, flameTable(label, nodes, name, whole)];
}

/** The same as a table, made when it is opened. */
function flameTable(label, nodes, name, whole) {
  const room = h("div");
  const columns = [
    { key: "frame", title: "Frame", of: (at) => name(nodes[at][1]), cell: (at) => nameOf(name(nodes[at][1])), heads: true },
    { key: "samples", title: "Samples", of: (at) => nodes[at][2], cell: (at) => thousands(nodes[at][2]), number: true },
    { key: "share", title: "Share", of: (at) => nodes[at][2], cell: (at) => percent(nodes[at][2], whole), number: true },
    { key: "caller", title: "Called by", of: (at) => name(nodes[nodes[at][0]][1]), cell: (at) => nameOf(name(nodes[nodes[at][0]][1])) },
  ];
  const rows = nodes.map((_, at) => at).slice(1);
  const draw = (key, down) => room.replaceChildren(table(label + ", as a table", columns, rows, { key, down }, (next, falling) => {
    draw(next, falling);
    room.querySelector('th[data-key="' + next + '"] button').focus();
    say("Sorted by " + next);
  }, 50));
  return h("details", { ontoggle: () => room.firstChild || draw("samples", true) }, h("summary", null, "As a table"), room);
}
