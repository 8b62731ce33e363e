// Areas in proportion to bytes: lines of the application, and in each the types that it allocated.

/** Squarified (Bruls, Huizing, van Wijk): [{value, ...}] into the rectangle, each with x, y, w, h. */
function squarify(items, x, y, w, h) {
  const out = [];
  let rest = items.filter((i) => i.value > 0);
  let total = rest.reduce((sum, i) => sum + i.value, 0);
  while (rest.length && w > 0.5 && h > 0.5) {
    const side = Math.min(w, h);
    const scale = (w * h) / total;
    const worst = (sum, least, most) => Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
    let sum = 0;
    let count = 0;
    let ratio = Infinity;
    let most = 0;
    for (const item of rest) {
      const area = item.value * scale;
      most = Math.max(most, area);
      const next = worst(sum + area, area, most);
      if (next > ratio) break;
      ratio = next;
      sum += area;
      count++;
    }
    const thick = sum / side;
    let at = 0;
    for (const item of rest.slice(0, count)) {
      const long = (item.value * scale) / thick;
      out.push(Object.assign({}, item, w < h ? { x: x + at, y, w: long, h: thick } : { x, y: y + at, w: thick, h: long }));
      at += long;
      total -= item.value;
    }
    if (w < h) [y, h] = [y + thick, h - thick];
    else [x, w] = [x + thick, w - thick];
    rest = rest.slice(count);
  }
  return out;
}

/** `groups`: [{name, value, title, class, share, href, parts: [{name, value, title}]}]. */
function treemap(groups, width, height, label) {
  const fits = (text, w) => short(text, Math.floor(w / 6.6));
  const tiles = squarify(groups, 0, 0, width, height).map((g) => {
    const title = g.w > 44 && g.h > 30;
    const inner = squarify([...g.parts].sort((a, b) => b.value - a.value), g.x + 2, g.y + (title ? 18 : 2), g.w - 4, g.h - (title ? 20 : 4));
    const content = [svg("title", null, g.title),
      svg("rect", { class: "frame", x: g.x, y: g.y, width: g.w, height: g.h }),
      inner.map((p) => svg("g", { class: "part" }, svg("title", null, p.title), svg("rect", { x: p.x + 0.5, y: p.y + 0.5, width: Math.max(0, p.w - 1), height: Math.max(0, p.h - 1) }),
        p.w > 44 && p.h > 16 ? svg("text", { x: p.x + 5, y: p.y + 13 }, fits(p.name, p.w - 8)) : null)),
      title ? svg("text", { class: "title", x: g.x + 5, y: g.y + 13 }, fits(g.name, g.w - 8)) : null];
    return g.href ? svg("a", { class: "tile " + g.class, href: g.href, "aria-label": g.title, "--share": g.share }, content) : svg("g", { class: "tile " + g.class, role: "img", "aria-label": g.title, "--share": g.share }, content);
  });
  return svg("svg", { class: "treemap", viewBox: "0 0 " + width + " " + height, role: "group", "aria-label": label }, tiles);
}
