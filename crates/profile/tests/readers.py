#!/usr/bin/env python3
"""Reads a profile with DuckDB, pandas and pyarrow and compares it with its manifest and with itself.

usage: readers.py PROFILE        a profile directory
       readers.py BORESCOPE      the borescope program: makes a profile of each lens of its demo first

Also runs every example query of docs/formats.md on the profile. Exit code 0 = all agree; else the first difference is on standard error.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import pandas
import pyarrow.parquet

# Column types that a Parquet reader must see: Spark, too, takes all of these as they are.
LIST_INT = "list<element: int32 not null>"
RANGE = "struct<start: int32 not null, end: int32 not null>"
LIST_RANGE = f"list<element: {RANGE} not null>"
COLUMNS = {
    "methods": {
        "method": "int32", "class": "string", "name": "string", "descriptor": "string", "source_file": "string", "loader": "string",
        "class_hash": "string", "instances": "int32", "num_paths": "string", "numbered_paths": "int32", "activations": "int64",
        "unfinished": "int64", "ids": "int64", "paths": "int64", "kipf_nodes": "int64", "merged": "int64", "exact": "bool", "paths_exact": "bool",
        "chosen": "int64", "activations_lo": "int64", "activations_hi": "int64", "unfinished_lo": "int64", "unfinished_hi": "int64", "ids_lo": "int64",
        "ids_hi": "int64", "first_line": "int32", "last_line": "int32",
    },
    "paths": {
        "method": "int32", "id": "int32", "count": "int64", "lo": "int64", "hi": "int64", "lines": LIST_INT, "bcis": LIST_RANGE, "starts_at_entry": "bool",
        "starts_at_loop_head": "bool", "starts_at_handler": "bool", "starts_at_cut": "bool", "ends": "string",
    },
    "kipf": {
        "method": "int32", "node": "int32", "parent": "int32", "depth": "int32", "id": "int32", "count": "int64", "lo": "int64",
        "hi": "int64", "truncated": "int64",
    },
    "merged": {"method": "int32", "head": RANGE, "arms": LIST_RANGE, "join": RANGE, "lines": LIST_INT},
    "code": {"method": "int32", "lines": LIST_INT},
    "loops": {"method": "int32", "head": RANGE, "line": "int32", "zero": "int64", "one": "int64", "many": "int64", "unsure": "int64"},
    "skipped": {"class": "string", "name": "string", "descriptor": "string", "lens": "string", "reason": "string"},
}
SITES = {
    "sites": {
        "site": "int32", "type": "string", "class": "string", "method": "string", "descriptor": "string", "source_file": "string",
        "line": "int32", "bci": "int32", "kind": "string", "app_class": "string", "app_method": "string", "app_descriptor": "string",
        "app_source_file": "string", "app_line": "int32",
    },
    "live": {
        "snapshot": "int32", "site": "int32", "type": "string", "live_objects": "int64", "live_bytes": "int64", "reason": "string",
    },
    "objects": {"snapshot": "int32", "address": "int64", "bytes": "int64", "type": "string", "site": "int32", "reason": "string"},
    "skipped": COLUMNS["skipped"],
}
WASTE = {
    "contexts": {
        "context": "int32", "caller": "int32", "what": "string", "class": "string", "method": "string", "descriptor": "string",
        "source_file": "string", "line": "int32", "bci": "int32",
    },
    "pairs": {
        "pair": "int32", "kind": "string", "wasteful": "bool", "count": "int64", "first": "int32", "second": "int32", "first_type": "string",
        "second_type": "string", "first_doubtful": "bool", "second_doubtful": "bool", "first_access": "string", "first_width": "int32",
        "first_element": "string", "second_access": "string", "second_width": "int32", "second_element": "string", "first_code": "string",
        "second_code": "string", "whole": "bool", "loads_between": "bool", "stores_between": "bool", "others_between": "bool",
        "initialising": "bool", "object": "int64",
    },
    "skipped": COLUMNS["skipped"],
}
DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "formats.md"
checks = 0


def same(what, found, expected):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"readers.py: {what}: {found!r}, expected {expected!r}")


def with_arrow(profile, tables):
    for table, columns in tables.items():
        schema = pyarrow.parquet.read_schema(profile / f"{table}.parquet")
        same(f"columns of {table}", {f.name: str(f.type) for f in schema}, columns)


def with_pandas(profile, manifest):
    totals, exact = manifest["totals"], manifest["lost"] == 0 and not manifest["stopped"] and not manifest["counters_torn"]
    methods, paths, kipf, merged, code, loops, skipped = (pandas.read_parquet(profile / f"{table}.parquet") for table in COLUMNS)
    same("methods", len(methods), totals["methods"])
    same("methods that ran", int(((methods.activations > 0) | (methods.ids > 0)).sum()), totals["methods_executed"])
    same("skipped", len(skipped), totals["skipped"])
    same("all paths exact", bool(methods.paths_exact.all()), exact or methods.empty)
    for column in ["activations", "ids", "unfinished", "paths", "kipf_nodes"]:
        same(f"sum of {column}", int(methods[column].sum()), totals[column])
    # Where paths that an exception interrupts are not counted, calls are what left.
    slots = methods[methods.unfinished.isna()]
    left = paths[paths.ends.isin(["return", "throw"])].groupby("method")["count"].sum()
    same("calls of methods in slots", int(slots.activations.sum()), int(left.reindex(slots.method, fill_value=0).sum()))
    same("merged", merged.groupby("method").size().to_dict(), methods[methods.merged > 0].set_index("method").merged.to_dict())
    same("branches", manifest["branches"] == "merge" or (manifest["branches"] == "split" and merged.empty), True)
    for branch in merged.itertuples():
        same("arms", len(branch.arms) in (1, 2), True)
    same("code of each method", list(code.method), list(methods.method))
    same("loops of methods", set(loops.method) <= set(methods.method), True)
    same("turns are no less than nothing", bool((loops[["zero", "one", "many", "unsure"]] >= 0).all().all()), True)
    same("paths", len(paths), totals["paths"])
    same("sum of path counts", int(paths["count"].sum()), totals["ids"])
    same("k-IPF nodes", len(kipf), totals["kipf_nodes"])
    roots = kipf[kipf.parent.isna()]
    same("roots' depth", sorted(set(roots.depth)), [1] if len(roots) else [])
    same("roots are the paths", roots.set_index(["method", "id"])["count"].to_dict(), paths.set_index(["method", "id"])["count"].to_dict())
    same("depth", bool((kipf.depth <= manifest["k"]).all()), True)
    same("lo", bool((kipf["lo"] == kipf["count"]).all()), True)
    if exact:
        sure = kipf.method.isin(methods[methods.exact].method)
        same("hi", bool((kipf[sure]["hi"] == kipf[sure]["count"]).all()), True)
        same("bounds", bool((kipf["hi"] >= kipf["count"]).all()), True)
        same("truncated", int(kipf[sure].truncated.sum()), 0)
        children = kipf.dropna(subset="parent").groupby(["method", "parent"])["count"].sum()
        parents = kipf.set_index(["method", "node"])["count"]
        children.index = children.index.set_levels(children.index.levels[1].astype("int64"), level=1)
        same("a node occurs as often as its children", bool((parents.reindex(children.index) >= children).all()), True)
    for path in paths.itertuples():
        same("first range", path.bcis[0]["start"] < path.bcis[0]["end"], True)
        same("end", path.ends in ("back", "cut", "return", "throw"), True)
    lines = {m.method: (m.first_line, m.last_line) for m in methods.itertuples()}
    for path in paths.itertuples():
        first, last = lines[path.method]
        same("lines", all(first <= line <= last for line in path.lines), True)


def with_duckdb(profile, manifest):
    totals = manifest["totals"]

    def value(sql):
        return duckdb.sql(sql.replace("FROM ", f"FROM '{profile}/")).fetchall()[0][0]

    same("methods", value("SELECT count(*) FROM methods.parquet'"), totals["methods"])
    same("ids", int(value("SELECT coalesce(sum(count), 0) FROM paths.parquet'")), totals["ids"])
    same("kipf", int(value("SELECT count(*) FROM kipf.parquet'")), totals["kipf_nodes"])
    same("ranges", value("SELECT count(*) FROM paths.parquet' WHERE bcis[1].start >= bcis[1].end"), 0)
    same("skipped", value("SELECT count(*) FROM skipped.parquet'"), totals["skipped"])


def sites_with_pandas(profile, manifest):
    sites, live, objects, skipped = (pandas.read_parquet(profile / f"{table}.parquet") for table in SITES)
    same("sites", list(sites.site), list(range(manifest["totals"]["live_sites"])))
    same("a site or a reason", bool((live.site.isna() != live.reason.isna()).all()), True)
    same("sites of the rows", set(live.site.dropna().astype("int64")) | set(objects.site.dropna().astype("int64")), set(sites.site))
    same("snapshots", list(live.snapshot.unique()), [s["number"] for s in manifest["snapshots"]])
    listed = objects.groupby(["snapshot", "type", "site", "reason"], dropna=False).bytes.agg(["count", "sum"])
    summed = live.set_index(["snapshot", "type", "site", "reason"])[["live_objects", "live_bytes"]]
    same("the listed objects are those that were counted", listed.sort_index().values.tolist(), summed.sort_index().values.tolist())
    with_app = live.merge(sites[sites.app_class.notna()], on="site")
    for snapshot in manifest["snapshots"]:
        for key, rows in [("live", live), ("with_site", live[live.site.notna()]), ("with_app", with_app)]:
            rows = rows[rows.snapshot == snapshot["number"]]
            same(key, {"objects": int(rows.live_objects.sum()), "bytes": int(rows.live_bytes.sum())}, snapshot[key])
        unknown = live[live.reason.notna() & (live.snapshot == snapshot["number"])].groupby("reason")[["live_objects", "live_bytes"]].sum()
        expected = {reason: [sum["objects"], sum["bytes"]] for reason, sum in snapshot["unknown"].items()}
        same("unknown", {row.Index: [row.live_objects, row.live_bytes] for row in unknown.itertuples()}, expected)


def waste_with_pandas(profile, manifest):
    contexts, pairs, skipped = (pandas.read_parquet(profile / f"{table}.parquet") for table in WASTE)
    same("contexts", list(contexts.context), list(range(1, manifest["totals"]["contexts"] + 1)))
    same("callers stand before", bool((contexts.caller.dropna() < contexts.context[contexts.caller.notna()]).all()), True)
    named = contexts.what == "frame"
    same("names of frames", bool((contexts["class"].notna() == named).all() and (contexts.line.notna() == named).all()), True)
    same("pairs", list(pairs.pair), list(range(1, manifest["totals"]["pairs"] + 1)))
    same("contexts of pairs", set(pairs["first"]) | set(pairs.second.dropna().astype("int64")) <= set(contexts.context), True)
    same("a second access where it is waste", bool((pairs.second.notna() == pairs.wasteful).all()), True)
    same("answers", int(pairs["count"].sum()), manifest["samples"]["recorded"])
    if manifest["samples"]["no_room"] == 0:
        for kind, expected in manifest["kinds"].items():
            of = pairs[pairs.kind == kind]
            found = {wasteful: int(of[of.wasteful == wasteful]["count"].sum()) for wasteful in (True, False)}
            same(kind, found, {True: expected["wasteful"], False: expected["useful"]})


def with_docs(profile, lens):
    """The examples of the documentation, as they stand there."""
    of_paths, rest = DOCS.read_text().split("\n## Profile of sites\n")
    of_sites, of_waste = rest.split("\n## Profile of waste\n")
    text = {"paths": of_paths, "sites": of_sites, "waste": of_waste}[lens]
    examples = re.findall(r"^```(sql|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    same("the documentation has examples", len(examples) >= 3, True)
    os.chdir(profile)
    for language, text in examples:
        if language == "sql":
            duckdb.sql(text).fetchall()
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, str(DOCS), "exec"), {})


def check(profile):
    manifest = json.loads((profile / "manifest.json").read_text())
    same("schema", manifest["schema"], 3)
    lens = manifest.get("lens", "paths")
    if lens == "sites":
        with_arrow(profile, SITES)
        sites_with_pandas(profile, manifest)
        what = f"{sum(s['live']['objects'] for s in manifest['snapshots'])} live objects"
    elif lens == "waste":
        with_arrow(profile, WASTE)
        waste_with_pandas(profile, manifest)
        what = f"{manifest['samples']['recorded']} answers"
    else:
        with_arrow(profile, COLUMNS)
        with_pandas(profile, manifest)
        with_duckdb(profile, manifest)
        what = f"{manifest['totals']['ids']} path IDs"
    with_docs(profile, lens)
    print(f"{profile}: {what}, {checks} comparisons agree (DuckDB {duckdb.__version__}, pandas {pandas.__version__})")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    given = pathlib.Path(sys.argv[1]).resolve()
    if given.is_dir():
        return check(given)
    with tempfile.TemporaryDirectory() as temp:
        java = pathlib.Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        classes = DOCS.parents[1] / "java"
        sites = ["sites", "--objects", "-q", "-o", pathlib.Path(temp) / "sites", "--", java, "-cp", classes, "demo.Settings", "20"]
        waste = ["waste", "--rate", "2000", "-q", "-o", pathlib.Path(temp) / "waste", "--", java, "-cp", classes, "demo.Settings", "20"]
        for lens, arguments in [("paths", ["demo", "-o", pathlib.Path(temp) / "paths"]), ("sites", sites), ("waste", waste)]:
            ran = subprocess.run([given, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env=os.environ)
            print(ran.stderr, end="", file=sys.stderr)
            if lens == "waste" and ran.returncode == 2:
                print(f"NOT CHECKED: a profile of waste, which this machine does not allow: {ran.stderr.strip()}")
                continue
            same(f"exit code of {lens}", ran.returncode, 0)
            check(pathlib.Path(temp) / lens)


main()
