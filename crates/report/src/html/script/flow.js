// The picture of a method's control flow: stretches of code as boxes in layers, arrows as wide as they were taken often.

const BOX = { width: 132, height: 40, gap: 26, layer: 46, thin: 14, lane: 13 };

/** Longest way from a start to each box along arrows that lead forward. A profile is not trusted: what lies on a cycle goes last. */
function layers(count, edges) {
  const incoming = new Array(count).fill(0);
  edges.forEach((e) => incoming[e.to]++);
  const layer = new Array(count).fill(0);
  const queue = [];
  incoming.forEach((n, at) => n === 0 && queue.push(at));
  for (let i = 0; i < queue.length; i++) {
    for (const e of edges.filter((one) => one.from === queue[i])) {
      layer[e.to] = Math.max(layer[e.to], layer[e.from] + 1);
      if (--incoming[e.to] === 0) queue.push(e.to);
    }
  }
  return layer;
}

/** Where boxes and the bends of long arrows are: [{x, y, block | null}], and for each arrow its points. */
function layout(flow) {
  const forward = flow.edges.filter((e) => e.kind === "forward" && e.from !== e.to);
  const layer = layers(flow.blocks.length, forward);
  const nodes = flow.blocks.map((block, at) => ({ at, block, layer: layer[at], width: BOX.width, before: [], after: [] }));
  const ways = new Map();
  for (const e of forward) {
    const way = [nodes[e.from]];
    for (let l = layer[e.from] + 1; l < layer[e.to]; l++) {
      const bend = { block: null, layer: l, width: BOX.thin, before: [], after: [] };
      nodes.push(bend);
      way.push(bend);
    }
    way.push(nodes[e.to]);
    for (let i = 1; i < way.length; i++) {
      way[i - 1].after.push(way[i]);
      way[i].before.push(way[i - 1]);
    }
    ways.set(e, way);
  }
  const rows = [];
  nodes.forEach((n) => (rows[n.layer] = rows[n.layer] || []).push(n));
  const place = (row) => row.forEach((n, at) => (n.place = at));
  rows.forEach(place);
  const mean = (near, own) => (near.length ? near.reduce((sum, n) => sum + n.place, 0) / near.length : own);
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      row.forEach((n) => (n.wish = mean(down ? n.before : n.after, n.place)));
      row.sort((a, b) => a.wish - b.wish || a.place - b.place);
      place(row);
    }
  }
  const wide = (row) => row.reduce((sum, n) => sum + n.width + BOX.gap, -BOX.gap);
  const width = Math.max(BOX.width, ...rows.map(wide));
  rows.forEach((row, l) => {
    let x = (width - wide(row)) / 2;
    for (const n of row) {
      n.x = x + n.width / 2;
      n.y = l * (BOX.height + BOX.layer);
      x += n.width + BOX.gap;
    }
  });
  return { nodes, ways, width, height: rows.length * (BOX.height + BOX.layer) - BOX.layer };
}

/** `lines(block)`: its name; `onpick(block)`: it was chosen. */
function flowPicture(flow, numbers, lines, onpick) {
  const { nodes, ways, width, height } = layout(flow);
  const most = Math.max(1, ...flow.edges.map((e) => e.count), ...flow.blocks.map((b) => b.count));
  const thick = (count) => 1 + 5 * (count / most);
  const others = flow.edges.filter((e) => !ways.has(e));
  // Arrows that lead back run beside the boxes, the longer the farther out: turns of loops on the right, exceptions on the left.
  others.sort((a, b) => Math.abs(nodes[a.from].y - nodes[a.to].y) - Math.abs(nodes[b.from].y - nodes[b.to].y));
  const lanes = { left: 0, right: 0 };
  const drawn = [];
  const label = (x, y, text, anchor) => svg("text", { x, y, class: "weight", "text-anchor": anchor || "middle" }, text);
  const edge = (e, path, x, y, anchor) => drawn.push(svg("g", { class: "edge " + e.kind, "data-from": e.from, "data-to": e.to },
    svg("path", { d: path, "stroke-width": thick(e.count).toFixed(2), "marker-end": "url(#head)" }),
    label(x, y, numbers(e.count), anchor), svg("title", null, lines(flow.blocks[e.from]) + " to " + lines(flow.blocks[e.to]) + ": " + numbers(e.count))));
  const pads = { left: 40, right: 40 };
  for (const e of others) {
    const [a, b] = [nodes[e.from], nodes[e.to]];
    const side = e.kind === "exception" ? "left" : "right";
    const sign = side === "left" ? -1 : 1;
    const lane = lanes[side]++;
    const out = (side === "left" ? 0 : width) + sign * (18 + lane * BOX.lane);
    const [x1, x2] = [a.x + (sign * BOX.width) / 2, b.x + (sign * BOX.width) / 2];
    const [y1, y2] = [a.y + BOX.height * 0.7, b.y + BOX.height * 0.35];
    const bend = 8 * sign;
    const up = y2 > y1 ? 8 : -8;
    const path = `M${x1},${y1} H${out - bend} Q${out},${y1} ${out},${y1 + up} V${y2 - up} Q${out},${y2} ${out - bend},${y2} H${x2 + sign * 7}`;
    edge(e, path, out + sign * 4, (y1 + y2) / 2 + (lane % 3) * 13 - 13, side === "left" ? "end" : "start");
    pads[side] = 96 + lanes[side] * BOX.lane;
  }
  for (const [e, way] of ways) {
    let path = `M${way[0].x},${way[0].y + BOX.height}`;
    for (let i = 1; i < way.length; i++) {
      const [a, b] = [way[i - 1], way[i]];
      const [y1, y2] = [a.y + BOX.height, b.block ? b.y - 7 : b.y];
      const middle = (y1 + y2) / 2;
      path += ` C${a.x},${middle} ${b.x},${middle} ${b.x},${y2}`;
      if (!b.block) path += ` V${b.y + BOX.height}`;
    }
    const [a, b] = way;
    edge(e, path, (a.x + b.x) / 2, (a.y + BOX.height + b.y) / 2 + 4);
  }
  const boxes = nodes.filter((n) => n.block).map((n) => {
    const ends = [n.block.returns && "returns " + numbers(n.block.returns), n.block.throws && "throws " + numbers(n.block.throws), n.block.turns && "turns " + numbers(n.block.turns)].filter(Boolean);
    const title = lines(n.block) + " (bytecode " + n.block.bcis[0] + "\u2013" + (n.block.bcis[1] - 1) + "), run " + numbers(n.block.count) + " times" + (ends.length ? ", " + ends.join(", ") : "") + (n.block.entry ? ", entry" : "") + (n.block.handler ? ", exception handler" : "");
    const pick = () => onpick(n.block);
    return svg("g", { class: "box", role: "button", tabindex: "0", "aria-label": title, "data-block": n.at, onclick: pick, onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick()) },
      svg("title", null, title),
      svg("rect", { x: n.x - BOX.width / 2, y: n.y, width: BOX.width, height: BOX.height, rx: 7, "--share": n.block.count / most }),
      svg("text", { x: n.x, y: n.y + 17, "text-anchor": "middle", class: "place" }, short(lines(n.block), 21)),
      svg("text", { x: n.x, y: n.y + 33, "text-anchor": "middle", class: "count" }, numbers(n.block.count)),
      n.block.entry ? svg("text", { x: n.x - BOX.width / 2, y: n.y - 6, class: "end" }, "\u25bc entry") : null,
      n.block.handler ? svg("text", { x: n.x - BOX.width / 2, y: n.y - 6, class: "end" }, "\u26a0 handler") : null,
      ends.length ? svg("text", { x: n.x - BOX.width / 2 + 4, y: n.y + BOX.height + 14, class: "end" }, "\u25b2 " + ends.join(", ")) : null);
  });
  const box = [-pads.left, -24, width + pads.left + pads.right, height + 50];
  const head = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 2, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0 L8,4 L0,8 z" }));
  return svg("svg", { class: "flow", viewBox: box.join(" "), width: box[2], height: box[3], role: "group", "aria-label": "Control flow with counts" }, svg("defs", null, head), drawn, boxes);
}

function short(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}

/** The same as a table. */
function flowTable(flow, numbers, lines) {
  const row = (e) => h("tr", null, h("td", null, lines(flow.blocks[e.from])), h("td", null, lines(flow.blocks[e.to])), h("td", null, { forward: "within a path", back: "next turn of a loop", cut: "next path", exception: "exception" }[e.kind]), h("td", { class: "number" }, numbers(e.count)));
  return h("details", null, h("summary", null, "As a table"), h("table", null,
    h("thead", null, h("tr", null, ["from", "to", "how", "times"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", null, flow.edges.map(row))));
}

/** Sets off the boxes and arrows of a path (null = of none). */
function markFlow(picture, flow, path) {
  const inside = (block) => path.bcis.some((r) => r[0] <= block.bcis[0] && block.bcis[1] <= r[1]);
  picture.classList.toggle("chosen", Boolean(path));
  for (const box of picture.querySelectorAll(".box")) {
    box.classList.toggle("on", Boolean(path) && inside(flow.blocks[box.dataset.block]));
  }
  const order = path ? path.bcis.flatMap((r) => flow.blocks.map((b, at) => [b, at]).filter(([b]) => r[0] <= b.bcis[0] && b.bcis[1] <= r[1]).map(([, at]) => at)) : [];
  const steps = new Set(order.slice(1).map((to, at) => order[at] + ">" + to));
  for (const e of picture.querySelectorAll(".edge")) {
    e.classList.toggle("on", e.classList.contains("forward") && steps.has(e.dataset.from + ">" + e.dataset.to));
  }
}
