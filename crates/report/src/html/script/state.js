// What is shown stands in the part of the address after #, so that a link shows the same: #method=4&path=9&prune=10.

function state() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** The address of what is shown now with some parts changed (null = without). */
function link(changes, base) {
  const parts = Object.assign({}, base || {}, changes);
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parts)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
  }
  return "#" + query.toString();
}

/** Keeps a detail of what is shown (a slider, a chosen path) in the address, without a step in the history. */
function keep(changes) {
  history.replaceState(null, "", link(changes, state()));
}
