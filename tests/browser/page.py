#!/usr/bin/env python3
"""Opens pages that `borescope report --format html` makes in a real Chromium, uses them, and looks for faults.

usage: page.py [--shots DIR] BORESCOPE PROFILE [SOURCE]...   profiles of any lens, each with a directory of its sources after a colon
       page.py run/borescope demo.borescope:java shop.borescope:java

Needs `pip install playwright axe-playwright-python` and a Chromium: the distribution's package, or another one named by CHROMIUM (playwright's
own download is not used). Checks each view, search, sorting, the slider, links, keys, light and dark; that nothing is written to the console, that
nothing but the file is asked for, and that axe-core finds no serious fault. Exit code 0 = all is well; else the faults are on standard error.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, sync_playwright

SIZE = {"width": 1440, "height": 900}
# What a page shows is there at once; this is for a machine that has much else to do.
MILLISECONDS = 60_000
checks = 0
faults = []


def check(good, what):
    global checks
    checks += 1
    if not good:
        faults.append(what)
        print(f"page.py: {what}", file=sys.stderr, flush=True)


def attempt(what, action, *arguments):
    """The action's result; that a part of a page is not there or does not react is a fault like others."""
    try:
        return action(*arguments)
    except Error as error:
        check(False, f"{what}: {str(error)[:600]}")
        return None


class Watched:
    """A page of a browser of which all requests and messages are kept."""

    def __init__(self, browser, file, fragment="", **options):
        self.context = browser.new_context(viewport=SIZE, offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(MILLISECONDS)
        self.faults = []
        self.page.on("console", lambda message: self.faults.append(f"console: {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked(request.url))
        self.file = file
        self.open(fragment)

    def asked(self, url):
        if url.split("#")[0] != self.file.as_uri() and url != "data:,":
            self.faults.append(f"request: {url}")

    def open(self, fragment):
        # Another document first: a change of the fragment alone loads nothing.
        self.page.goto("about:blank")
        self.page.goto(self.file.as_uri() + fragment)

    def count(self, selector):
        return self.page.locator(selector).count()

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def fragment(self):
        return self.page.evaluate("location.hash")

    def close(self):
        self.faults = [fault for fault in self.faults if "about:blank" not in fault]
        check(not self.faults, f"{self.file.name}: {self.faults[:3]}")
        self.context.close()


def paths(seen):
    """Overview, sorting, and the hottest methods of a profile of paths."""
    page = seen.page
    check(seen.count(".leads ol > li, .leads > p") >= 1, "no card says where to look first")
    check(seen.count(".leads > ol > li") <= 3, "the card has more than three findings")
    rows = seen.count("main table tbody tr")
    check(rows >= 1, "no methods")
    first = seen.text("main table tbody tr a")
    page.locator('th[data-key="method"] button').click()
    check(page.locator('th[data-key="method"]').get_attribute("aria-sort") == "ascending", "not sorted by name")
    names = page.locator("main table tbody tr td:nth-child(2) a, main table tbody tr td:nth-child(2) > span:first-child").all_inner_texts()
    check(names == sorted(names, key=lambda name: name), f"names out of order: {names[:5]}")
    check("sort=method" in seen.fragment(), "the order is not in the address")
    seen.open(seen.fragment())
    check(page.locator('th[data-key="method"]').get_attribute("aria-sort") == "ascending", "a link does not keep the order")
    seen.open("")
    check(seen.text("main table tbody tr a") == first, "another order at the start")
    methods = min(5, page.evaluate("DATA.details.length"))
    for number in range(1, methods + 1):
        method(seen, number)
    return page.evaluate("DATA.methods[0].method")


def method(seen, number):
    """One method: its picture, tree, table and source, and what a chosen path does to them."""
    page = seen.page
    seen.open(f"#method={number}")
    name = seen.text("h1")
    check(seen.count(".source") == 1, f"{name}: no source panel")
    paths, blocks = page.evaluate(f"[DATA.details[{number - 1}].paths.length, DATA.details[{number - 1}].flow.blocks.length]")
    check(seen.count("section table tbody tr[data-path]") == paths, f"{name}: not all paths are in the table")
    check(seen.count("svg.flow .box") == blocks, f"{name}: not all code is in the picture")
    boxes = page.evaluate("[...document.querySelectorAll('svg.flow .box rect')].map(r => ['x', 'y', 'width', 'height'].map(a => +r.getAttribute(a)))")
    for i, (x, y, width, height) in enumerate(boxes):
        for u, v, w, h in boxes[:i]:
            check(x >= u + w or u >= x + width or y >= v + h or v >= y + height, f"{name}: boxes lie on each other")
    if paths:
        chip = page.locator("table button[data-path]").first
        chip.click()
        check(f"path={chip.get_attribute('data-path')}" in seen.fragment(), f"{name}: the path is not in the address")
        check(chip.get_attribute("aria-pressed") == "true", f"{name}: the path is not marked")
        has_lines = page.evaluate(f"DATA.details[{number - 1}].paths[0].lines.length > 0")
        check((seen.count(".source tr.on") > 0) == has_lines, f"{name}: the lines of the path are not marked")
        check(blocks == 0 or seen.count("svg.flow .box.on") > 0, f"{name}: the way of the path is not marked")
        seen.open(seen.fragment())
        check(seen.count("tr.on[data-path]") == 1, f"{name}: a link does not keep the path")
    if seen.count("#prune"):
        nodes = []
        for share in (1, 10, 60):
            page.locator("#prune").evaluate("(slider, share) => { slider.value = share; slider.dispatchEvent(new Event('input')); }", share)
            nodes.append(seen.count(".tree .node"))
        check(nodes[0] >= nodes[1] >= nodes[2] >= 1, f"{name}: the slider does not prune: {nodes}")
        check("prune=60" in seen.fragment(), f"{name}: the slider is not in the address")
        page.locator("#prune").focus()
        page.keyboard.press("ArrowLeft")
        check("prune=59" in seen.fragment(), f"{name}: the slider does not follow the keys")


def sites(seen):
    """Overview, snapshots, treemap and table of a profile of sites, and its first lines."""
    page = seen.page
    check(seen.count(".leads > ol > li, .leads > p") >= 1, "no card says where to look first")
    lines, snapshots = page.evaluate("[DATA.lines.length, DATA.snapshots.length]")
    check(seen.count("svg.treemap .tile") >= min(lines, 2), "no treemap")
    if snapshots > 1:
        check(seen.count("svg.plot polyline") >= 2, "no plot of the growth")
        before = seen.text("section.card .controls + p")
        page.locator('select[data-key="snapshot"]').select_option(index=0)
        check(seen.text("section.card .controls + p") != before, "another snapshot shows the same")
        check("snapshot=" in seen.fragment(), "the snapshot is not in the address")
        seen.open("")
    page.locator('th[data-key="objects"] button').click()
    check(page.locator('th[data-key="objects"]').get_attribute("aria-sort") == "descending", "not sorted by objects")
    for number in range(1, min(4, lines) + 1):
        seen.open(f"#line={number}")
        check(seen.count("main table tbody tr") >= 1, f"line {number} has no types")
    seen.open("")
    page.locator("svg.treemap a.tile").first.click()
    check("line=" in seen.fragment() and seen.count("h1") == 1, "a tile leads nowhere")
    return page.evaluate("DATA.lines[0].method")


def waste(seen):
    """Overview, table and flame graphs of a profile of waste, and its first pairs."""
    page = seen.page
    check(seen.count(".leads ol > li, .leads > p") >= 1, "no card says where to look first")
    check(seen.count(".leads > ol > li") <= 3, "the card has more than three findings")
    check("estimates" in seen.text("main"), "the page does not say that its shares are estimates")
    pairs, kinds = page.evaluate("[DATA.pairs.length, DATA.flames.filter(f => f.nodes.length > 1).map(f => f.kind)]")
    check(seen.count("main .card > .scroll > table tbody tr") == min(pairs, 100), "not all pairs are in the table")
    page.locator('th[data-key="samples"] button').click()
    check(page.locator('th[data-key="samples"]').get_attribute("aria-sort") == "descending", "not sorted by samples")
    samples = [int(text.replace(",", "")) for text in page.locator("main .card > .scroll > table tbody tr td:nth-child(4)").all_inner_texts()]
    check(samples == sorted(samples, reverse=True), f"samples out of order: {samples[:5]}")
    seen.open(seen.fragment())
    check(page.locator('th[data-key="samples"]').get_attribute("aria-sort") == "descending", "a link does not keep the order")
    seen.open("")
    for kind in kinds:
        page.locator('select[data-key="kind"]').select_option(kind)
        check(f"kind={kind}" in seen.fragment(), "the kind is not in the address")
        flame(seen, f"flame graph of {kind}")
    for number in range(1, min(4, pairs) + 1):
        pair(seen, number)
    return page.evaluate("DATA.frames[DATA.pairs[0].first].method")


def pair(seen, number):
    page = seen.page
    seen.open(f"#pair={number}")
    both, contexts, source = page.evaluate(f"(p => [isBoth(p), p.contexts.length, Boolean(DATA.frames[p.first].source)])(DATA.pairs[{number - 1}])")
    check("an estimate" in seen.text("main .head"), f"pair {number}: its share does not say that it is an estimate")
    check(seen.count(".beside:not(.contexts) > section") == (1 if both else 2), f"pair {number}: not both accesses are there")
    check((seen.count("section.half tr.on") > 0) == source, f"pair {number}: the line is not marked in its source")
    check(seen.count(".contexts ol") == 2 and seen.count(".contexts ol strong") == 2, f"pair {number}: not two contexts")
    if contexts > 1:
        before = seen.text(".contexts")
        page.locator('select[data-key="context"]').select_option("2")
        check("context=2" in seen.fragment() and seen.text(".contexts") != before, f"pair {number}: other contexts are not shown")
        seen.open(seen.fragment())
        check(page.locator('select[data-key="context"]').input_value() == "2", f"pair {number}: a link does not keep the contexts")
    flame(seen, f"pair {number}")


def flame(seen, name):
    """A flame graph: its frames lie within their callers; keys walk, widen and go back; the table has all frames."""
    page = seen.page
    rects = "[...document.querySelectorAll('svg.flame .box')].map(b => [+b.getAttribute('aria-level'), ...['x', 'width'].map(a => +b.querySelector('rect').getAttribute(a))])"
    boxes = page.evaluate(rects)
    check(len(boxes) >= 2, f"{name}: no frames")
    for level, x, width in boxes:
        inside = level == 1 or any(up == level - 1 and u <= x + 0.1 and x + width <= u + w + 0.1 for up, u, w in boxes)
        check(inside, f"{name}: a frame is outside of its caller")
        check(not any(other == level and x < u and x + width > u + 0.1 for other, u, _ in boxes), f"{name}: frames lie on each other")
    check(seen.count('svg.flame [tabindex="0"]') == 1, f"{name}: not one frame is reached by the tab key")
    now = "document.activeElement.dataset.node"
    page.locator('svg.flame [tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    at = page.evaluate(now)
    check(at not in (None, "0"), f"{name}: the keys do not walk down")
    told = page.evaluate("document.activeElement.getAttribute('aria-label')")
    check("sample" in told and "%" in told, f"{name}: a frame does not say its samples: {told}")
    check(seen.text(".chosen") == told, f"{name}: what is told below is not of the frame")
    page.keyboard.press("Enter")
    check(f"zoom={at}" in seen.fragment() and page.evaluate(now) == at, f"{name}: Enter does not widen the frame")
    wide = page.evaluate(f"+document.querySelector('svg.flame [data-node=\"{at}\"] rect').getAttribute('width')")
    check(wide > 1090, f"{name}: the frame is not wide: {wide}")
    seen.open(seen.fragment())
    check(seen.count(f'svg.flame .on[data-node="{at}"]') == 1, f"{name}: a link does not keep the frame")
    page.locator(f'svg.flame [data-node="{at}"]').focus()
    page.keyboard.press("ArrowUp")
    check(page.evaluate(now) != at, f"{name}: the keys do not walk up")
    page.keyboard.press("Escape")
    check("zoom" not in seen.fragment() and page.evaluate(rects) == boxes, f"{name}: Escape does not show the whole")
    page.locator("svg.flame .box").nth(1).click()
    check("zoom=" in seen.fragment(), f"{name}: a click does not widen")
    page.get_by_role("button", name="Whole graph").click()
    check(page.evaluate(rects) == boxes, f"{name}: the button does not show the whole")
    page.locator("main details:has(summary:text('As a table')) summary").click()
    page.locator("main details[open] tbody tr").first.wait_for()
    check(seen.count("main details[open] tbody tr") >= min(50, len(boxes) - 1), f"{name}: not all frames are in its table")


def keys_and_search(seen, word):
    page = seen.page
    seen.open("")
    title = seen.text("h1")
    page.keyboard.press("Tab")
    check(page.evaluate("document.activeElement.id") == "skip", "the first key does not reach the link to the content")
    page.keyboard.press("/")
    check(page.evaluate("document.activeElement.id") == "search", "/ does not lead to the search")
    page.keyboard.type(word)
    page.locator(".hits li").first.wait_for()
    check("q=" in seen.fragment(), "the search is not in the address")
    page.keyboard.press("Escape")
    page.locator(".hits").first.wait_for(state="detached")
    check(seen.text("h1") == title, "an emptied search does not lead back")
    page.keyboard.type(word)
    page.locator(".hits a").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".hits").first.wait_for(state="detached")
    page.go_back()
    page.locator(".hits").first.wait_for()
    seen.open("#q=no+such+thing+anywhere")
    check(seen.text("h1").startswith("0"), "found what is not there")


def accessible(browser, file, fragments, scheme):
    """No serious fault by axe-core's rules. It is put into the page past its policy."""
    seen = Watched(browser, file, bypass_csp=True, color_scheme=scheme)
    for fragment in fragments:
        seen.open(fragment)
        found = Axe().run(seen.page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in found if one["impact"] in ("serious", "critical")]
        check(not serious, f"{file.name}{fragment}, {scheme}: {serious[:3]}")
    seen.context.close()


def shots(browser, file, fragments, to):
    for scheme in ("light", "dark"):
        seen = Watched(browser, file, color_scheme=scheme)
        for label, fragment in fragments:
            seen.open(fragment)
            seen.page.screenshot(path=to / f"{file.stem}-{label}-{scheme}.png")
            seen.page.screenshot(path=to / f"{file.stem}-{label}-{scheme}-whole.png", full_page=True)
        seen.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("borescope")
    parser.add_argument("profiles", nargs="+")
    arguments = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("page.py: no Chromium: install the distribution's package, or set CHROMIUM to one")
    with tempfile.TemporaryDirectory() as room, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        for at, profile in enumerate(arguments.profiles):
            directory, _, source = profile.partition(":")
            file = pathlib.Path(room) / f"{at + 1}-{pathlib.Path(directory).stem}.html"
            command = [arguments.borescope, "report", directory, "--format", "html", "--out", str(file)]
            subprocess.run(command + (["--source", source] if source else []), check=True)
            check(file.stat().st_size <= 5_000_000, f"{file.name} is too large")
            seen = Watched(browser, file)
            lens = seen.page.evaluate("DATA.lens")
            use, detail = {"paths": (paths, "#method=1"), "sites": (sites, "#line=1"), "waste": (waste, "#pair=1")}[lens]
            if arguments.shots:
                arguments.shots.mkdir(parents=True, exist_ok=True)
                first = seen.page.evaluate("(DATA.first[0] || {method: 1}).method" if lens == "paths" else "0")
                best = f"#method={first}&path={seen.page.evaluate(f'DATA.details[{first - 1}].paths[0].id')}" if lens == "paths" else detail
                shots(browser, file, [("first", ""), ("detail", best)], arguments.shots)
            word = attempt(file.name, use, seen)
            attempt(f"{file.name}, keys and search", keys_and_search, seen, word or "a")
            seen.open("")
            light = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
            seen.page.locator("#theme").click()
            check(seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != light, "no other colours")
            seen.close()
            for scheme in ("light", "dark"):
                attempt(f"{file.name}, axe-core", accessible, browser, file, ["", detail, "#q=a"], scheme)
            print(f"{file.name}: {file.stat().st_size:,} bytes, {lens}")
        browser.close()
    if faults:
        sys.exit(f"page.py: {len(faults)} of {checks} checks failed")
    print(f"page.py: {checks} checks, all well")


main()
