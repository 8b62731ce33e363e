"use strict";
// Building blocks: elements, and numbers and names in words. All text of the page passes through `clean`; nothing is ever parsed as HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** Text of the profiled program without what could reorder or hide the text around it. */
function clean(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, String(value));
    else element.setAttribute(name, value === true ? "" : clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}

/** An element: h("p", {class: "x", onclick: f, "--share": 0.5}, "text", element, [more]). */
function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same of a picture. */
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// The rules of the text report (words.rs): nothing claims more than the number says.

function thousands(n) {
  return Number.isSafeInteger(n) ? n.toLocaleString("en-US") : "about " + n.toExponential(3);
}

/** An estimate: three digits that say something. */
function about(n) {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(n, 1))) - 2);
  const whole = Math.round(n / unit) * unit;
  if (whole < 1e6) return "~" + thousands(whole);
  if (whole < 1e8) return "~" + (whole / 1e6).toFixed(whole < 1e7 ? 2 : 1) + "\u00a0M";
  return "~" + thousands(Math.floor(whole / 1e6)) + "\u00a0M";
}

function percent(part, whole) {
  if (!whole || !part) return "0\u00a0%";
  if (part >= whole) return "100\u00a0%";
  const rounded = Math.round((part * 100) / whole);
  if (rounded === 0) return "<\u00a01\u00a0%";
  return rounded === 100 ? ">\u00a099\u00a0%" : rounded + "\u00a0%";
}

function size(bytes) {
  const unit = Math.min(4, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  if (unit === 0) return bytes + "\u00a0B";
  const tenths = Math.floor((bytes * 10) / 1024 ** unit);
  const number = tenths < 1000 ? (tenths / 10).toFixed(1) : thousands(Math.floor(tenths / 10));
  return number + "\u00a0" + ["KiB", "MiB", "GiB", "TiB"][unit - 1];
}

function signed(n, words) {
  return n > 0 ? "+" + words(n) : n < 0 ? "\u2212" + words(-n) : "0";
}

function plural(n, one, many) {
  return thousands(n) + "\u00a0" + (n === 1 ? one : many);
}

/** Sorted numbers as ranges: 12-15, 18. */
function ranges(numbers) {
  const out = [];
  for (const n of numbers) {
    const last = out[out.length - 1];
    if (last && n === last[1] + 1) last[1] = n;
    else if (!last || n !== last[1]) out.push([n, n]);
  }
  return out.map(([a, b]) => (a === b ? String(a) : a + "\u2013" + b)).join(", ");
}

/** Where class and method begin in a name. */
function packageEnd(full) {
  const paren = full.search(/[ (]/);
  const head = paren < 0 ? full : full.slice(0, paren);
  return head.lastIndexOf(".", head.lastIndexOf(".") - 1) + 1;
}

/** A name with its last part set off: what one looks for is at the end. */
function nameOf(full) {
  const dot = packageEnd(full);
  return [h("span", { class: "package" }, full.slice(0, dot)), h("bdi", null, full.slice(dot))];
}

/** Paragraphs of the text report; its first words, such as "Exact:", set off. */
function paragraphs(lines, attributes) {
  return (lines || []).map((line) => {
    const found = /^(Exact|Estimates|Lower bounds|Bounded|Careful|Incomplete|Not known): /.exec(line);
    if (!found) return h("p", attributes, line);
    const doubt = found[1] !== "Exact";
    return h("p", { class: doubt ? "doubt" : "sure" }, h("strong", null, found[1] + ": "), line.slice(found[0].length));
  });
}

/** What a screen reader is to say now. */
function say(text) {
  document.getElementById("status").textContent = clean(text);
}

/** A table that sorts by its heads. `columns`: {key, title, of(row) -> sort value, cell(row), number}; `sorted`: {key, down}; `onsort(key, down)`. */
function table(caption, columns, rows, sorted, onsort, most) {
  const column = columns.find((c) => c.key === sorted.key) || columns[0];
  const sign = sorted.down ? -1 : 1;
  const value = (row) => column.of(row);
  const order = rows.map((row, at) => [row, at]);
  order.sort(([a, i], [b, j]) => {
    const [x, y] = [value(a), value(b)];
    return (x < y ? -sign : x > y ? sign : 0) || i - j;
  });
  const head = columns.map((c) => {
    const on = c.key === column.key;
    const down = on ? !sorted.down : c.number;
    const button = h("button", { type: "button", class: "head", onclick: () => onsort(c.key, down) }, c.title, h("span", { class: "arrow", "aria-hidden": "true" }, on ? (sorted.down ? " \u25be" : " \u25b4") : ""));
    return h("th", { scope: "col", class: c.number && "number", "aria-sort": on ? (sorted.down ? "descending" : "ascending") : null, "data-key": c.key }, c.of ? button : c.title);
  });
  const body = h("tbody");
  const more = h("button", { type: "button", class: "quiet" });
  let shown = 0;
  const show = (count) => {
    for (const [row] of order.slice(shown, shown + count)) {
      body.append(h("tr", null, columns.map((c, at) => h(at === 0 && c.heads ? "th" : "td", { class: c.number && "number", scope: at === 0 && c.heads ? "row" : null }, c.cell(row)))));
    }
    shown = Math.min(order.length, shown + count);
    more.textContent = "Show " + thousands(Math.min(500, order.length - shown)) + " more of " + thousands(order.length - shown);
    more.hidden = shown >= order.length;
  };
  more.addEventListener("click", () => show(500));
  show(most);
  const text = typeof caption === "string" ? caption : caption.textContent;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text }, h("table", null, h("caption", { class: "unseen" }, text), h("thead", null, h("tr", null, head)), body), more);
}
