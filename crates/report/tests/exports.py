#!/usr/bin/env python3
"""Has other programs read the exports of profiles, and compares what they see with the profiles' tables.

usage: exports.py BORESCOPE [PROFILE ...]   the borescope program, and profiles; without any: of the demo and of a compiler at work, by both lenses

Go's pprof reads the pprof format, lcov-cobertura and genhtml the coverage, sarif-pydantic the findings, pandas the tables.
Exit code 0 = all agree; else the first difference is on standard error.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import duckdb
import lcov_cobertura
import pandas
import sarif_pydantic

ROOT = pathlib.Path(__file__).resolve().parents[3]
# What was installed beside this Python comes first.
TOOLS = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
checks = 0


def same(what, found, expected):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"exports.py: {what}: {found!r}, not {expected!r}")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"exports.py: {command}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def tool(name):
    return shutil.which(name, path=TOOLS)


def pprof(file, *arguments):
    # Go builds its pprof when that is first asked for, from what it has.
    env = {"GOCACHE": str(ROOT / ".cache" / "go"), **os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "PPROF_TMPDIR": str(file.parent)}
    return run(tool("go"), "tool", "pprof", *arguments, file, env=env).decode()


def samples(file):
    """Values of each sample as Go's pprof reads them."""
    lines = re.findall(r"^ +((?:\d+ +)*\d+): ((?:\d+ )+)", pprof(file, "-raw"), re.MULTILINE)
    return [([int(n) for n in values.split()], len(stack.split())) for values, stack in lines]


class Exporter:
    def __init__(self, borescope, profile, out):
        self.borescope, self.profile, self.out = borescope, profile, out

    def file(self, format, *options):
        file = self.out / f"{format}{len(options)}"
        file.unlink(missing_ok=True)
        run(self.borescope, "report", self.profile, "--format", format, "--out", file, *options)
        same(f"{format}: to standard output it is the same", run(self.borescope, "report", self.profile, "--format", format, *options), file.read_bytes())
        return file

    def table(self, name):
        return duckdb.sql(f"SELECT * FROM '{self.profile}/{name}.parquet'").df()


def collapsed(text):
    return [(stack.split(";"), int(count)) for stack, _, count in (line.rpartition(" ") for line in text.splitlines())]


def findings(exporter):
    log = sarif_pydantic.Sarif.model_validate_json(exporter.file("sarif").read_text())
    same("version of SARIF", log.version, "2.1.0")
    same("one run of ours", [run.tool.driver.name for run in log.runs], ["borescope"])
    rules = [rule.id for rule in log.runs[0].tool.driver.rules]
    # The model takes fields that it does not know; none of ours may be such, but for one of the standard's (3.14.17) that it lacks.
    same("fields of the run", set(log.runs[0].model_extra) - {"columnKind"}, set())
    for result in log.runs[0].results:
        same("fields of a result", result.model_extra, {})
        place = result.locations[0]
        physical = [place.physical_location, place.physical_location.artifact_location, place.physical_location.region]
        same("fields of a place", [one.model_extra for one in [place, *place.logical_locations, *physical]], [{}] * (1 + len(place.logical_locations) + 3))
        same("a rule that there is", result.rule_id in rules, True)
        same("places", len(result.locations), 1)
    return len(log.runs[0].results)


def of_sites(exporter, manifest):
    live = exporter.table("live")
    number = manifest["snapshots"][-1]["number"]
    live = live[live.snapshot == number]
    totals = [int(live.live_objects.sum()), int(live.live_bytes.sum())]
    option = ["--snapshot", number]
    file = exporter.file("pprof", *option)
    read = samples(file)
    same("samples", sorted(values for values, _ in read), sorted([int(a), int(b)] for a, b in zip(live.live_objects, live.live_bytes)))
    same("depths", {depth for _, depth in read} <= {2, 3}, True)
    top = pprof(file, "-top", "-unit=B", "-nodecount=5", "-nodefraction=0", "-sample_index=inuse_space")
    same("total of -top", int(re.search(r"of (\d+)B total", top).group(1)) if "total" in top else totals[1], totals[1])
    stacks = collapsed(exporter.file("collapsed", *option).read_text())
    same("bytes of the stacks", sum(count for _, count in stacks), totals[1])
    types = live.groupby("type").live_bytes.sum().to_dict()
    by_type = collections.Counter()
    for stack, count in stacks:
        by_type[stack[-1]] += count
    same("bytes of the types", dict(by_type), {ty: int(size) for ty, size in types.items()})
    table = pandas.read_csv(exporter.file("csv"), keep_default_na=False)
    whole = exporter.table("live")
    same("rows", len(table), len(whole))
    for column in ["live_objects", "live_bytes"]:
        same(column, table.groupby("snapshot")[column].sum().to_dict(), whole.groupby("snapshot")[column].sum().to_dict())
    same("a site or a reason", bool(((table["class"] == "") == (table.reason != "")).all()), True)
    return f"{totals[0]} live objects"


def of_paths(exporter, manifest):
    paths, methods = exporter.table("paths"), exporter.table("methods")
    file = exporter.file("pprof")
    read = samples(file)
    counts = sorted(int(count) for count in paths["count"])
    same("samples", sorted(values[0] for values, _ in read), counts)
    same("a path in its method", {depth for _, depth in read}, {2})
    hottest = methods.sort_values("ids").iloc[-1]
    top = pprof(file, "-top", "-cum", "-nodecount=3", "-nodefraction=0")
    same("the hottest method comes first", f"{hottest['class']}.{hottest['name']}" in top, True)
    stacks = collapsed(exporter.file("collapsed").read_text())
    same("counts of the stacks", sorted(count for _, count in stacks), counts)
    table = pandas.read_csv(exporter.file("csv"), keep_default_na=False, dtype={"lines": str})
    same("counts of the table", sorted(table["count"]), counts)
    same("paths with their lines", sorted(len(lines.split()) for lines in table.lines), sorted(len(lines) for lines in paths.lines))
    coverage(exporter, methods)
    return f"{sum(counts)} path IDs"


def coverage(exporter, methods):
    file = exporter.file("lcov")
    text = file.read_text()
    calls = {name: int(count) for count, name in re.findall(r"^FNDA:(\d+),(.*)$", text, re.MULTILINE)}
    with_lines = methods[methods.first_line.notna() & methods.source_file.notna()]
    same("methods", len(calls), len(with_lines))
    same("calls", sum(calls.values()), int(with_lines.activations.sum()))
    # Lines: what ran is in `paths`, what did not in `code`.
    ran = exporter.table("paths").explode("lines")[["method", "lines"]].dropna().drop_duplicates()
    placed = with_lines.assign(file=with_lines["class"].str.rpartition(".")[0] + "/" + with_lines.source_file)[["method", "file"]]
    ran = ran.merge(placed, on="method")[["file", "lines"]].drop_duplicates()
    hit = re.findall(r"^DA:(\d+),(\d+)$", text, re.MULTILINE)
    same("lines that ran", sum(count != "0" for _, count in hit), len(ran))
    # Turns of loops, of methods with lines.
    loops = exporter.table("loops").merge(placed, on="method")
    for column, branch in [("zero", 0), ("one", 1), ("many", 2)]:
        expected = sorted(int(count) for count in loops[loops.line > 0][column] if count > 0)
        same(f"loops with entries of {column}", len(expected) <= len(re.findall(rf"^BRDA:\d+,\d+,{branch},[1-9]", text, re.MULTILINE)), True)
    # An independent reader: as many lines as we say.
    cobertura = xml.etree.ElementTree.fromstring(lcov_cobertura.LcovCobertura(text).convert())
    found = sum(int(n) for n in re.findall(r"^LF:(\d+)$", text, re.MULTILINE))
    covered = sum(int(n) for n in re.findall(r"^LH:(\d+)$", text, re.MULTILINE))
    same("LH", covered, sum(count != "0" for _, count in hit))
    same("lines that lcov-cobertura read", (cobertura.get("lines-valid"), cobertura.get("lines-covered")), (str(found), str(covered)))
    page = exporter.out / "genhtml"
    without_sources = ["--synthesize-missing"] if genhtml_version() >= 2 else ["--ignore-errors", "source"]
    said = run(tool("genhtml"), "--branch-coverage", *without_sources, "-o", page, file).decode()
    same("genhtml's lines", f"({covered} of {found} lines)" in said, True)
    branches = [sum(int(n) for n in re.findall(rf"^{key}:(\d+)$", text, re.MULTILINE)) for key in ["BRH", "BRF"]]
    same("genhtml's branches", f"({branches[0]} of {branches[1]} branches)" in said, True)


def genhtml_version():
    return int(re.search(r"LCOV version (\d+)", run(tool("genhtml"), "--version").decode()).group(1))


def check(borescope, profile):
    manifest = json.loads((profile / "manifest.json").read_text())
    with tempfile.TemporaryDirectory() as temp:
        exporter = Exporter(borescope, profile, pathlib.Path(temp))
        what = of_sites(exporter, manifest) if manifest.get("lens") == "sites" else of_paths(exporter, manifest)
        found = findings(exporter)
    print(f"{profile}: {what}, {found} findings, {checks} comparisons agree")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for needed in ["go", "genhtml"]:
        if not tool(needed):
            sys.exit(f"exports.py: no `{needed}`: tests/fetch installs one")
    borescope, *given = (pathlib.Path(one).resolve() for one in sys.argv[1:])
    for profile in given:
        check(borescope, profile)
    if given:
        return
    java = pathlib.Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    demo = ["-cp", ROOT / "java", "demo.Settings", "20"]
    ecj = ["-jar", ROOT / ".cache/jars/ecj-3.38.0.jar", "-proc:none", "-17", "-d", "none", ROOT / "java/demo/Settings.java"]
    with tempfile.TemporaryDirectory() as temp:
        for name, program in [("demo", demo), ("ecj", ecj)]:
            for lens, options in [("paths", []), ("sites", [])]:
                profile = pathlib.Path(temp) / f"{name}-{lens}"
                run(borescope, lens, *options, "-q", "-o", profile, "--", java, *program)
                check(borescope, profile)


main()
