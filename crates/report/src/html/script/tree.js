// What follows what: the sequences that begin with a path, as nested lists that the style draws as a tree (figure 4 of the k-BLPP paper).

/** `tree.nodes`: [parent, id, count, lo, hi]; shown are those of at least `share` of the root. */
function treeList(tree, share, numbers, onpick, place) {
  const [root] = tree.nodes;
  const least = Math.max(share * root[2], tree.floor + (tree.floor > 0 ? 1 : 0));
  const children = tree.nodes.map(() => []);
  tree.nodes.forEach((node, at) => at > 0 && node[2] >= least && children[node[0]].push(at));
  let shown = 0;
  const item = (at, sequence) => {
    const [parent, id, count, lo, hi] = tree.nodes[at];
    const of = parent < 0 ? null : percent(count, tree.nodes[parent][2]);
    const bounds = lo === undefined ? "" : ", from " + numbers(lo) + (hi === null ? " on" : " to " + numbers(hi));
    const words = "path " + id + " (" + place(id) + "), " + numbers(count) + " times" + bounds + (of ? ", " + of + " of the times " + sequence.join(", ") + " ran" : "");
    shown++;
    const next = children[at].map((child) => item(child, [...sequence, id]));
    return h("li", null,
      h("button", { type: "button", class: "node", "data-path": id, "aria-label": words, title: words, "--share": count / root[2], onclick: () => onpick(id) },
        of ? h("span", { class: "step" }, of) : null, h("b", null, String(id)), h("span", { class: "count" }, numbers(count))),
      next.length ? h("ul", null, next) : null);
  };
  const list = h("ul", { class: "tree" }, item(0, []));
  return { list, shown };
}

/** The tree with its controls. `kept`: {root, prune} of the address; `onkeep(changes)`; `ondraw()` after each change. */
function treeView(trees, k, numbers, onpick, place, kept, onkeep, ondraw) {
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tree of what follows what" });
  const said = h("p", { class: "hint", "aria-live": "polite" });
  const output = h("output", { for: "prune" });
  let tree = trees.find((t) => String(t.nodes[0][1]) === kept.root) || trees[0];
  const slider = h("input", { type: "range", id: "prune", min: 1, max: 60, step: 1 });
  slider.value = kept.prune || 10;
  const draw = () => {
    const prune = Number(slider.value);
    const { list, shown } = treeList(tree, prune / 100, numbers, onpick, place);
    box.replaceChildren(list);
    output.textContent = prune + "\u00a0%";
    const floor = Math.ceil((tree.floor * 100) / tree.nodes[0][2]);
    said.textContent = plural(shown, "sequence", "sequences") + " of up to " + k + " paths" +
      (floor >= prune && tree.floor > 0 ? "; those below " + floor + "\u00a0% are not in this page" : "") + ". On the lines: the share of the times the step before ran that go on this way.";
  };
  slider.addEventListener("input", () => { draw(); onkeep({ prune: slider.value }); ondraw(); });
  const choice = h("select", { id: "root", onchange: (event) => { tree = trees[event.target.selectedIndex]; draw(); onkeep({ root: tree.nodes[0][1] }); ondraw(); } },
    trees.map((t) => h("option", { value: t.nodes[0][1], selected: t === tree }, "path " + t.nodes[0][1] + " (" + numbers(t.nodes[0][2]) + ")")));
  draw();
  return [h("div", { class: "controls" },
    h("label", { for: "root" }, "After ", choice),
    h("label", { for: "prune" }, "hide what is below ", slider, " ", output, " of it")), box, said];
}
