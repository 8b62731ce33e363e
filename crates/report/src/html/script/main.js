// Draws what the address says, and reacts to keys.

const main = document.getElementById("main");
const search = document.getElementById("search");

function view(shown) {
  if (shown.q) return searchView(shown.q);
  if (shown.method) return methodView(Number(shown.method), shown);
  if (shown.line) return lineView(Number(shown.line), shown);
  if (shown.pair) return pairView(Number(shown.pair), shown);
  return { paths: pathsOverview, sites: sitesOverview, waste: wasteOverview }[DATA.lens](shown);
}

/** `moved`: the reader went somewhere else, so that reading begins at the top. */
function render(moved) {
  const shown = state();
  const parts = view(shown).flat(Infinity);
  main.replaceChildren(...parts.filter((part) => part instanceof Node));
  parts.filter((part) => typeof part === "function").forEach((after) => after());
  const heading = main.querySelector("h1");
  document.title = clean(heading ? heading.textContent : DATA.command) + " - borescope";
  if (document.activeElement !== search) search.value = shown.q || "";
  if (moved && document.activeElement !== search) {
    window.scrollTo(0, 0);
    if (heading) heading.focus({ preventScroll: true });
  }
}

let waiting = 0;
let before = "";
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const was = state();
    const text = search.value.trim();
    // What was shown before the search comes back when the box is emptied.
    if (text && was.q) keep({ q: text });
    else if (text) {
      before = location.hash;
      location.hash = link({ q: text });
    } else if (was.q) location.hash = before;
    render(false);
  }, 120);
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    search.value = "";
    search.dispatchEvent(new Event("input"));
  }
  if (event.key === "Enter") {
    const hit = main.querySelector(".hits a");
    if (hit) location.hash = hit.getAttribute("href");
    search.blur();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    search.focus();
  }
});

document.getElementById("skip").addEventListener("click", () => main.focus());
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
document.getElementById("command").textContent = clean(DATA.command || "");
document.getElementById("footer").textContent = "borescope " + clean(DATA.borescope) + ". This page is one file and loads nothing; the part of its address after # is what it shows.";
addEventListener("hashchange", () => render(true));
render(false);
