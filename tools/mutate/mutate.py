"""Measures which mutations of the code that protects money are found by tests (PACKAGES="shared/ledger ...").

gremlins lists the mutants of each package, and instrument/ puts them into a copy of the tree: one program with a choice
at each place. Each mutant that the package's own tests reach runs against them. One that lives runs against the
simulator's fixed seeds. survivors.toml explains every mutant that both let live.
"""
import argparse
import collections
import contextlib
import functools
import json
import os
import re
import resource
import shutil
import signal
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
SIMULATOR = "proof/simulate"
HISTORIES = ["-test.run", "^TestSeeds$", "-first", "1", "-shown", "0", "-seeds"]
MINIMUM_COVERED, MINIMUM_KILLED = 95, 92  # percent
# With -trimpath Go's cache serves the copy too. Without debugging information a test is linked in half the time.
ENVIRONMENT = os.environ | {"GOFLAGS": "-trimpath -ldflags=-w"}
LISTING = os.environ | {"GOFLAGS": "-run=^$ -trimpath"}  # gremlins runs no mutant that no test covers: it only lists
TIMEOUT = 600  # seconds, of a build and its tests
SLOWEST, FLOOR = 8, 10  # a mutant may run for this multiple of the clean run, and for this many seconds at least
QUICK = 1  # seconds: tests that take longer run only if the quick ones let a mutant live
MEMORY = 12 << 30  # bytes of address space: a mutant that never stops allocating must not stop the machine
NOT_VIABLE, DOES_NOT_END, LIVES, KILLED_HERE = "not viable", "does not end", "lives", "killed"
KILLED = ("own", "simulator", NOT_VIABLE)
WORK = Path(".local/mutate")
TREE = WORK / "tree"  # a copy of what git sees

MUTATIONS = {
    "ARITHMETIC_BASE": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
    "CONDITIONALS_BOUNDARY": {">=": ">", ">": ">=", "<=": "<", "<": "<="},
    "CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="},
    "INCREMENT_DECREMENT": {"++": "--", "--": "++"},
    "INVERT_NEGATIVES": {"-": "+"},
}
Mutant = collections.namedtuple("Mutant", "file line column type")


def run(*command, folder=TREE, timeout=TIMEOUT, **variables):
    """Returns the exit status of a command, None after a timeout, and what it printed."""
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT | variables, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, preexec_fn=limit_memory, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # also the test that the go command has started
            return None, ""
    return process.returncode, output


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def must(*command, folder=TREE, environment=ENVIRONMENT, given=""):
    """Returns what a command printed. Ends the program if the command fails."""
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, input=given)
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


def operator_at(source, mutant):
    """Returns the operator of a mutant and the one that replaces it. Columns count bytes from 1."""
    text = source.split(b"\n")[mutant.line - 1][mutant.column - 1:]
    for old, new in sorted(MUTATIONS[mutant.type].items(), key=lambda pair: -len(pair[0])):
        if text.startswith(old.encode()):
            return old, new
    raise ValueError(f"no operator of {mutant.type} at {mutant.file}:{mutant.line}:{mutant.column}")


def mutate(source, mutant):
    """Returns the source with the mutation."""
    (old, new), lines, at = operator_at(source, mutant), source.split(b"\n"), mutant.column - 1
    line = lines[mutant.line - 1]
    lines[mutant.line - 1] = line[:at] + new.encode() + line[at + len(old):]
    return b"\n".join(lines)


def function_at(lines, number):
    """Returns the name of the function around a line; an empty name at package level."""
    name = ""
    for n, line in enumerate(lines, 1):
        if start := re.match(rb"func (?:\([^)]*\) )?(\w+)", line):
            name, first = start[1].decode(), n
        if name and (line.startswith(b"}") or n == first and line.endswith(b"}")):
            if first <= number <= n:
                return name
            name = ""
    return ""


class Suite:
    """The tests of a folder, built with all mutants: which of them they reach, how long they run, and what fails
    without an active mutant."""

    def __init__(self, folder, *arguments):
        self.folder, self.arguments, self.stages = folder, arguments, [[]]
        self.build("suite.test")
        record = (WORK / "reached").absolute()
        record.unlink(missing_ok=True)
        self.timeout, began = TIMEOUT, time.monotonic()
        self.known = self.failures("suite.test", "-test.v", MUTANTS_REACHED=str(record))
        self.timeout = max(FLOOR, SLOWEST * (time.monotonic() - began))
        if DOES_NOT_END in self.known:
            sys.exit(f"mutate: cannot measure: the tests of {folder} do not end")
        self.reached = set(map(int, record.read_text().split())) if record.exists() else set()

    def build(self, program):
        """Builds the tests, and returns whether they compile."""
        status, output = run("go", "test", "-c", "-vet=off", "-o", f"{self.folder}/{program}", f"./{self.folder}")
        if status and program == "suite.test":
            sys.exit(f"mutate: cannot measure: {self.folder} does not compile:\n{output}")
        return status == 0

    def new_failures(self, program, **variables):
        """Returns the failures of the first stage with one that is not known."""
        for stage in self.stages:
            if new := self.failures(program, *stage, **variables) - self.known:
                return new
        return set()

    def failures(self, program, *arguments, **variables):
        """Returns the tests and seeds that fail."""
        if not (TREE / self.folder / program).exists():
            return set()  # a folder without tests
        status, output = run(f"./{program}", "-test.short", *self.arguments, *arguments,
                             folder=TREE / self.folder, timeout=self.timeout, **variables)
        durations = {name: float(seconds) for name, seconds in
                     re.findall(r"(?m)^--- PASS: (\w+) \(([\d.]+)s\)", output)}
        slow = [name for name, seconds in durations.items() if seconds > QUICK]
        if slow and self.folder != SIMULATOR and "-test.v" in arguments:
            chosen, quick = f"^({'|'.join(slow)})$", sum(s for s in durations.values() if s <= QUICK)
            self.stages = [["-test.skip", chosen, "-test.timeout", f"{max(FLOOR, SLOWEST * quick):.0f}s"],
                           ["-test.run", chosen]]
        if status in (0, 1):
            return set(re.findall(r"seed \d+|--- FAIL: \w+", output))
        return {DOES_NOT_END if status is None else "panic"}

    def judge(self, row):
        """Returns whether a mutant is reached, and whether it is killed, lives or is no program. It is killed if
        something fails that does not fail without it."""
        if not row["fixed"]:
            if row["id"] not in self.reached:
                return False, LIVES
            return True, KILLED_HERE if self.new_failures("suite.test", MUTANT=str(row["id"])) else LIVES
        with mutated(row):
            if not self.build("fixed.test"):
                return False, NOT_VIABLE
            return True, KILLED_HERE if self.new_failures("fixed.test") else LIVES


@contextlib.contextmanager
def mutated(row):
    """Writes a mutant that cannot be chosen while the program runs, for the length of a with statement."""
    file = TREE / row["file"]
    instrumented = file.read_bytes()
    try:
        file.write_bytes(mutate(Path(row["file"]).read_bytes(), Mutant(*(row[name] for name in Mutant._fields))))
        yield
    finally:
        file.write_bytes(instrumented)


def instrument(rows):
    """Puts all mutants into the copy of the tree, and marks those that must be built one by one."""
    places = [{"id": row["id"], "file": row["file"], "line": row["line"], "column": row["column"],
               "operator": row["operator"]} for row in rows]
    program = (WORK / "instrument").absolute()
    must("go", "build", "-o", str(program), "./instrument", folder="tools/mutate", environment=os.environ)
    fixed = set(json.loads(must(str(program), given=json.dumps(places))))
    for row in rows:
        row["fixed"] = row["id"] in fixed


def list_mutants(package, first):
    """Returns a row without a result for each mutant of a package. Their ids begin with first."""
    report = (WORK / f"{package.replace('/', '-')}.json").absolute()
    gremlins = must("go", "tool", "-n", "-modfile=tools/mutate/go.mod", "gremlins", folder=".",
                    environment=os.environ).strip()
    must(gremlins, "unleash", "--workers", "1", "-E", EXCLUDED, "-o", str(report), f"./{package}", environment=LISTING)
    rows, seen = [], set()
    for entry in json.loads(report.read_text())["files"]:
        for found in sorted(entry["mutations"], key=lambda m: (m["line"], m["column"], m["type"])):
            mutant = Mutant(f"{package}/{entry['file_name']}", found["line"], found["column"], found["type"])
            source = (TREE / mutant.file).read_bytes()
            lines, changed = source.split(b"\n"), mutate(source, mutant)
            if (mutant.file, changed) in seen:
                continue  # INVERT_NEGATIVES repeats the subtractions of ARITHMETIC_BASE
            seen.add((mutant.file, changed))
            rows.append(mutant._asdict() | {
                "id": first + len(rows), "operator": operator_at(source, mutant)[1],
                "function": function_at(lines, mutant.line), "text": lines[mutant.line - 1].decode().strip()})
    return rows


def measure(rows, simulator, earlier, save):
    """Sets the result of each mutant of a package, and saves it. One that was killed earlier is not run again.
    simulator creates the simulator; without one only the package's own tests run."""
    killed = {place(row): row["result"] for row in earlier if row.get("result") in KILLED}
    suites = {}
    for row in rows:
        row["result"] = killed.get(place(row))
    for row in rows:
        if row["result"]:
            continue
        folder = os.path.dirname(row["file"])
        if folder not in suites:
            suites[folder] = Suite(folder, "-test.failfast")
            if suites[folder].known:
                sys.exit(f"mutate: cannot measure: the tests of {folder} fail: {suites[folder].known}")
        reached, result = suites[folder].judge(row)
        by = "own"
        if result == LIVES and simulator:
            reached_there, result = simulator().judge(row)
            reached, by = reached or reached_there, "simulator"
        row["result"] = {LIVES: "survived" if reached else "uncovered", KILLED_HERE: by}.get(result, result)
        save()
        if result == LIVES:
            print(f"{row['file']}:{row['line']}:{row['column']}: {row['type']} {row['result']}", flush=True)


def place(row):
    """Returns what makes a mutant the same one in two runs."""
    return tuple(row[name] for name in (*Mutant._fields, "text"))


def table(results, seconds, explanations):
    """Returns the results as a Markdown table, and the packages below a minimum."""
    lines, below = [
        "| Package | Mutants | Covered | Killed of covered | by own tests | by the simulator | Survivors | Explained "
        "| Seconds |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"], []
    for package, rows in results.items():
        count = collections.Counter(row["result"] for row in rows)
        total = len(rows) - count[NOT_VIABLE]
        covered = total - count["uncovered"]
        shares = 100 * covered / total, 100 * (covered - count["survived"]) / covered
        explained = sum(survivor(row) in explanations for row in rows if row["result"] not in KILLED)
        lines.append(f"| {package} | {total} | {shares[0]:.0f} % | {shares[1]:.0f} % | {count['own']} | "
                     f"{count['simulator']} | {total - count['own'] - count['simulator']} | {explained} | "
                     f"{seconds[package]:.0f} |")
        if shares[0] < MINIMUM_COVERED or shares[1] < MINIMUM_KILLED:
            below.append(f"{package}: {shares[0]:.1f} % covered (minimum {MINIMUM_COVERED}), {shares[1]:.1f} % of "
                         f"those killed (minimum {MINIMUM_KILLED}): add tests")
    return lines, below


def survivor(row):
    """Returns what names a mutant in survivors.toml."""
    return tuple(row[name] for name in ("file", "function", "text", "type"))


def read_explanations():
    """Returns the mutants that survivors.toml explains."""
    rows = tomllib.loads(Path("tools/mutate/survivors.toml").read_text()).get("survivors", [])
    return {survivor(row) for row in rows if row["reason"]}


def compare(explanations, results):
    """Returns each survivor without an explanation, and each explanation without a survivor."""
    lived = {survivor(r): r for rows in results.values() for r in rows if r["result"] not in KILLED}
    found = [f"{r['file']}:{r['line']}: {r['type']} survives: test it, or explain it in survivors.toml"
             for name, r in lived.items() if name not in explanations]
    return found + [f"survivors.toml: no mutant survives at {name}: remove the row" for name in sorted(explanations)
                    if name not in lived and name[0].startswith(tuple(f"{p}/" for p in results))]


def main():
    parser = argparse.ArgumentParser(description="Measures which mutations tests and the simulator find.")
    parser.add_argument("--seeds", type=int, default=150, help="seeds of the simulator for each mutant")
    parser.add_argument("--own", action="store_true", help="run the packages' own tests only, without the simulator")
    parser.add_argument("--again", action="store_true",
                        help="run only what the last run did not kill: for new tests of unchanged code")
    parser.add_argument("packages", nargs="*", metavar="package")
    options = parser.parse_args()
    os.chdir(Path(__file__).absolute().parents[2])
    copy_tree()
    packages, rows = options.packages or PACKAGES, []
    for package in packages:
        rows += list_mutants(package, len(rows))
    instrument(rows)
    simulator = None if options.own else functools.cache(lambda: Suite(SIMULATOR, *HISTORIES, str(options.seeds)))
    results, seconds, explanations = {}, {}, read_explanations()
    for package in packages:
        began, file = time.monotonic(), WORK / f"{package.replace('/', '-')}-results.json"
        earlier = json.loads(file.read_text()) if options.again and file.exists() else []
        results[package] = [row for row in rows if row["file"].startswith(f"{package}/")]
        print(f"{package}: {len(results[package])} mutants", flush=True)
        measure(results[package], simulator, earlier,
                lambda: file.write_text(json.dumps(results[package], indent=1) + "\n"))
        seconds[package] = time.monotonic() - began
        print(table({package: results[package]}, seconds, explanations)[0][-1], flush=True)
    lines, found = table(results, seconds, explanations)
    print(*lines, sep="\n")
    found += compare(explanations, results)
    if simulator and simulator.cache_info().currsize:
        found += [f"the simulator fails without a mutation: {f}: fix it" for f in sorted(simulator().known)]
    if found:
        print(*found, sep="\n")
        sys.exit(f"mutate: {len(found)} findings")


if __name__ == "__main__":
    main()
