"""Measures which mutations of the code that protects money are found by tests (PACKAGES="shared/ledger ...").

gremlins mutates each package and runs the package's own tests. Each mutant that these do not kill runs against the
simulator's fixed seeds. survivors.toml explains every mutant that both let live.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

PACKAGES = [
    "shared/ledger", "shared/operation", "shared/limit", "shared/dailyamount", "shared/webhook", "functions/charge",
    "functions/pay", "functions/sms", "functions/notif", "functions/receipt", "functions/relay", "functions/sweep",
]
# Test suites and bootstraps have no tests of their own.
EXCLUDED = r"(^|/)(\w+test|bootstrap)/"
HISTORIES = ["-test.run", "^(TestSeeds|TestRegression.*)$", "-first", "1", "-shown", "0", "-seeds"]
MINIMUM_COVERED, MINIMUM_KILLED = 95, 92  # percent
# Without -count=1 gremlins derives its timeout from a cached run. With -trimpath Go's cache serves its copies too.
ENVIRONMENT = os.environ | {"GOFLAGS": "-short -count=1 -trimpath -vet=off"}
TIMEOUT = 180  # seconds, of one run of tests
DOES_NOT_COMPILE, DOES_NOT_END = "does not compile", "does not end"
WORK = Path(".local/mutate")
TREE = WORK / "tree"  # a copy of what git sees, because gremlins copies its whole folder

MUTATIONS = {
    "ARITHMETIC_BASE": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
    "CONDITIONALS_BOUNDARY": {">=": ">", ">": ">=", "<=": "<", "<": "<="},
    "CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="},
    "INCREMENT_DECREMENT": {"++": "--", "--": "++"},
    "INVERT_NEGATIVES": {"-": "+"},
}
Mutant = collections.namedtuple("Mutant", "file line column type")
Block = collections.namedtuple("Block", "start end count")


def run(*command, folder=TREE, timeout=TIMEOUT):
    """Returns the exit status of a command, None after a timeout, and what it printed."""
    try:
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, text=True, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def must(*command, folder=TREE):
    """Returns what a command printed. Ends the program if the command fails."""
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"mutate: cannot measure: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def copy_tree():
    """Copies the files that git sees."""
    shutil.rmtree(TREE, ignore_errors=True)
    for name in must("git", "ls-files", "-co", "--exclude-standard", "-z", folder=".").split("\0"):
        if name and Path(name).exists():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, TREE / name)


def mutate(source, mutant):
    """Returns the source with the mutation. Columns count bytes from 1."""
    lines = source.split(b"\n")
    line, at = lines[mutant.line - 1], mutant.column - 1
    for old, new in sorted(MUTATIONS[mutant.type].items(), key=lambda pair: -len(pair[0])):
        if line[at:].startswith(old.encode()):
            lines[mutant.line - 1] = line[:at] + new.encode() + line[at + len(old):]
            return b"\n".join(lines)
    raise ValueError(f"no operator of {mutant.type} at {mutant.file}:{mutant.line}:{mutant.column}")


def function_at(lines, number):
    """Returns the name and the lines of the function around a line; an empty name at package level."""
    name = ""
    for n, line in enumerate(lines, 1):
        if start := re.match(rb"func (?:\([^)]*\) )?(\w+)", line):
            name, first = start[1].decode(), n
        if name and (line.startswith(b"}") or n == first and line.endswith(b"}")):
            if first <= number <= n:
                return name, range(first, n + 1)
            name = ""
    return "", range(0)


class Coverage:
    """The statements that a test run reached, by file."""

    def __init__(self, profile):
        self.blocks = collections.defaultdict(list)
        for file, *numbers in re.findall(r"mobilegateway/(\S+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)\n", profile):
            line, column, last, end, count = map(int, numbers)
            self.blocks[file].append(Block((line, column), (last, end), count))

    def reaches(self, mutant, lines):
        """Reports whether a run reached the mutant. Go measures no constants and no conditions of a case: the first
        are always in use, and the second if a run reached their function."""
        blocks, at = self.blocks[mutant.file], (mutant.line, mutant.column)
        around = [b for b in blocks if b.start <= at <= b.end]
        if not around:
            name, inside = function_at(lines, mutant.line)
            around = [b for b in blocks if b.start[0] in inside] if name else [Block(at, at, 1)]
        return any(b.count for b in around)


class Simulator:
    """The simulator's fixed seeds: what they reach and which of them fail without a mutation."""

    def __init__(self, seeds):
        self.seeds, self.timeout, began = str(seeds), 20 * TIMEOUT, time.monotonic()
        self.known = self.failures("-coverpkg=./shared/...,./functions/...")
        self.timeout = max(TIMEOUT, 10 * (time.monotonic() - began))
        if self.known & {DOES_NOT_COMPILE, DOES_NOT_END}:
            sys.exit(f"mutate: cannot measure: internal/simulate {self.known}")
        self.coverage = Coverage((TREE / "internal/simulate/cover.out").read_text())

    def failures(self, *flags):
        """Returns the failures of the seeds and of the regression histories."""
        if run("go", "test", "-c", "-o", "internal/simulate/mutated.test", *flags, "./internal/simulate")[0]:
            return {DOES_NOT_COMPILE}
        profile = ["-test.coverprofile", "cover.out"] if flags else []
        status, output = run("./mutated.test", *HISTORIES, self.seeds, *profile,
                             folder=TREE / "internal/simulate", timeout=self.timeout)
        if status in (0, 1):
            return set(re.findall(r"seed \d+|--- FAIL: TestRegression\S*", output))
        return {DOES_NOT_END}

    def kills(self):
        """Reports whether a history fails that does not fail without the mutation."""
        return bool(self.failures() - self.known)


def judge(mutant, status, own, simulator):
    """Returns who kills a mutant: "own", "simulator", "survived", "uncovered", or "not viable" if it is no program."""
    file, folder = TREE / mutant.file, "./" + os.path.dirname(mutant.file)
    source = file.read_bytes()
    lines = source.split(b"\n")
    reached = own.reaches(mutant, lines), simulator.coverage.reaches(mutant, lines)
    try:
        file.write_bytes(mutate(source, mutant))
        if mutant.type in ("ARITHMETIC_BASE", "INVERT_NEGATIVES") and run("go", "build", folder)[0]:
            return "not viable"  # gremlins counts it as killed
        if status == "KILLED":
            return "own"
        if status != "LIVED" and reached[0] and run("go", "test", "-failfast", folder)[0] != 0:
            return "own"
        if reached[1] and simulator.kills():
            return "simulator"
        return "survived" if any(reached) else "uncovered"
    finally:
        file.write_bytes(source)


def measure(package, simulator, workers):
    """Returns a row for each mutant of a package."""
    report = (WORK / f"{os.path.basename(package)}.json").absolute()
    print(f"{package}: gremlins is running its own tests", flush=True)
    must("go", "test", "-coverprofile", "cover.out", f"./{package}/...")
    own = Coverage((TREE / "cover.out").read_text())
    gremlins = must("go", "tool", "-n", "-modfile=tools/mutate/go.mod", "gremlins", folder=".").strip()
    must(gremlins, "unleash", "--workers", str(workers), "--timeout-coefficient", "15", "-E", EXCLUDED,
         "-o", str(report), f"./{package}")
    rows, seen = [], set()
    for entry in json.loads(report.read_text())["files"]:
        for found in sorted(entry["mutations"], key=lambda m: (m["line"], m["column"], m["type"])):
            mutant = Mutant(f"{package}/{entry['file_name']}", found["line"], found["column"], found["type"])
            source = (TREE / mutant.file).read_bytes()
            lines, mutated = source.split(b"\n"), mutate(source, mutant)
            if (mutant.file, mutated) in seen:
                continue  # INVERT_NEGATIVES repeats the subtractions of ARITHMETIC_BASE
            seen.add((mutant.file, mutated))
            result = judge(mutant, found["status"], own, simulator)
            rows.append(mutant._asdict() | {
                "package": package, "result": result, "function": function_at(lines, mutant.line)[0],
                "text": lines[mutant.line - 1].decode().strip()})
            if result in ("survived", "uncovered"):
                print(f"{mutant.file}:{mutant.line}:{mutant.column}: {mutant.type} {result}", flush=True)
    return rows


def table(results):
    """Returns the results as a Markdown table, and the packages below a minimum."""
    lines, below = [
        "| Package | Mutants | Covered | Killed by own tests | Killed by the simulator | Survivors | Killed of covered |",
        "|---|--:|--:|--:|--:|--:|--:|"], []
    for package, rows in results.items():
        count = collections.Counter(row["result"] for row in rows)
        total = len(rows) - count["not viable"]
        covered = total - count["uncovered"]
        shares = 100 * covered / total, 100 * (covered - count["survived"]) / covered
        lines.append(f"| {package} | {total} | {shares[0]:.0f} % | {count['own']} | {count['simulator']} | "
                     f"{count['survived']} | {shares[1]:.0f} % |")
        if shares[0] < MINIMUM_COVERED or shares[1] < MINIMUM_KILLED:
            below.append(f"{package}: {shares[0]:.1f} % covered (minimum {MINIMUM_COVERED}), {shares[1]:.1f} % of "
                         f"those killed (minimum {MINIMUM_KILLED}): add tests")
    return lines, below


def compare(explanations, results):
    """Returns each survivor without an explanation, and each explanation without a survivor."""
    key = ("file", "function", "text", "type")
    lived = {tuple(r[k] for k in key): r for rows in results.values() for r in rows
             if r["result"] in ("survived", "uncovered")}
    explained = {tuple(e[k] for k in key) for e in explanations if e["reason"]}
    found = [f"{r['file']}:{r['line']}: {r['type']} survives: test it, or explain it in survivors.toml"
             for place, r in lived.items() if place not in explained]
    return found + [f"survivors.toml: no mutant survives at {place}: remove the row" for place in sorted(explained)
                    if place not in lived and place[0].startswith(tuple(f"{p}/" for p in results))]


def main():
    parser = argparse.ArgumentParser(description="Measures which mutations tests and the simulator find.")
    parser.add_argument("--seeds", type=int, default=150, help="seeds of the simulator for each mutant")
    parser.add_argument("--workers", type=int, default=1, help="mutants that gremlins tests at the same time")
    parser.add_argument("packages", nargs="*", metavar="package")
    options = parser.parse_args()
    os.chdir(Path(__file__).absolute().parents[2])
    copy_tree()
    simulator = Simulator(options.seeds)
    results = {}
    for package in options.packages or PACKAGES:
        began = time.monotonic()
        results[package] = measure(package, simulator, options.workers)
        print(f"{package}: {len(results[package])} mutants in {time.monotonic() - began:.0f} s", flush=True)
        (WORK / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    lines, found = table(results)
    print(*lines, sep="\n")
    explanations = tomllib.loads(Path("tools/mutate/survivors.toml").read_text()).get("survivors", [])
    found += compare(explanations, results)
    found += [f"the simulator fails without a mutation: {failure}: fix it" for failure in sorted(simulator.known)]
    if found:
        print(*found, sep="\n")
        sys.exit(f"mutate: {len(found)} findings")


if __name__ == "__main__":
    main()
