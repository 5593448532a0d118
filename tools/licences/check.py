"""Checks the licence of every dependency against policy.toml.

It finds each list of dependencies by its file name: go.mod, package-lock.json, pom.xml, and the locks that
e2e/tools/install reads. It refuses a list of another form, and a dependency whose licence cannot be read.
It does not check the Debian packages of the container engine: Debian vouches for their licences.
"""
import collections
import fnmatch
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from commands import fail, run
from modules import read_modules
from policy import Dependency, join, judge, spell

HERE = Path(__file__).parent
LOCKED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^ ;\\\n]+)( ; )?", re.M)


def read_go(lists):
    """Reads the modules of each go.mod."""
    for name, version, licences, source, ships in read_modules(lists):
        yield Dependency("go", name, version, join(licences, "AND"), source, ships)


def install_npm(folder):
    """Installs the packages of a folder's lock below .local and returns where."""
    place = Path(".local/licences", folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(folder, name), place)
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=place)
    return place


def read_npm(lists):
    """Reads the packages of each lock. Packages for other systems are not installed: the lock names their licences."""
    checker = install_npm("tools/licences") / "node_modules/.bin/license-checker-rseidelsohn"
    for source in lists:
        installed = json.loads(run(checker, "--json", "--start", install_npm(Path(source).parent)))
        for place, row in json.loads(Path(source).read_text())["packages"].items():
            _, dependency, name = place.rpartition("node_modules/")
            if dependency and not row.get("link"):
                licence = installed.get(f"{name}@{row['version']}", {}).get("licenses") or row.get("license")
                yield Dependency("npm", name, row["version"], spell(str(licence or "")), source)


def read_maven(lists):
    """Reads the artifacts of each pom.xml. The user of an artifact chooses one of its licences."""
    for source in lists:
        with tempfile.TemporaryDirectory() as out:
            run("e2e/tools/maven/copy", source, out)
            rows = Path(out, "licences.txt").read_text().splitlines()
        if not rows:
            fail(f"{source} names no artifact")
        for name, version, *licences in (row.split("\t") for row in rows):
            yield Dependency("maven", name, version, join(licences, "OR"), source)


def read_environment(folder):
    """Returns the version and the licence of each package that is installed in a Python environment."""
    rows = run(sys.executable, "-m", "piplicenses", "--python", f"{folder}/bin/python", "--with-system",
               "--format=json")
    return {canonical(row["Name"]): (row["Version"], join(sorted(row["License"].split("; ")), "AND"))
            for row in json.loads(rows)}


def canonical(name):
    """Returns the one form of a Python package's name."""
    return re.sub("[-_.]+", "-", name).lower()


def read_python(lists):
    """Reads the packages of each lock as e2e/tools/install installs them, and uv, its installer."""
    for source in lists:
        run("e2e/tools/install", Path(source).stem)
        folder, lock = Path(".local/tools", Path(source).stem), Path(source).read_text()
        if (folder / "installed.lock").read_text() != lock:
            fail(f"{folder} was not installed from {source}: remove it and try again")
        installed = read_environment(folder)
        for name, version, condition in LOCKED.findall(lock):
            # A package with a condition may be for other systems. Its licence is not known here.
            found, licence = installed.get(canonical(name), (version if condition else "nothing", ""))
            if found != version:
                fail(f"{source} names {name} {version}, but {found} is installed")
            yield Dependency("python", canonical(name), version, licence, source)
    for folder in Path(".local/tools").glob("uv-*/"):
        yield Dependency("python", "uv", *read_environment(folder)["uv"], "e2e/tools/install")


# The first pattern that matches a file's name says who reads the file. A list without a reader is refused.
UNREAD = ("go.work", "Cargo.lock", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "Gemfile*", "composer.*",
          "build.gradle*", "*.csproj", "pyproject.toml", "requirements*.txt")
READERS = {"go.mod": read_go, "package-lock.json": read_npm, "pom.xml": read_maven, **dict.fromkeys(UNREAD),
           "*.lock": read_python}


def collect():
    """Reads every list of dependencies that git sees, except test data."""
    lists = collections.defaultdict(list)
    for name in run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        pattern = next((p for p in READERS if fnmatch.fnmatch(os.path.basename(name), p)), None)
        if pattern and os.path.exists(name) and "testdata" not in name.split("/"):
            lists[pattern].append(name)
            if not READERS[pattern]:
                fail(f"{name} has no reader: write one in tools/licences/check.py, or use another form of list")
    with ThreadPoolExecutor() as pool:  # they mostly wait
        return sorted(sum(pool.map(lambda pattern: list(READERS[pattern](lists[pattern])), lists), []))


def main():
    os.chdir(HERE.parents[1])
    found = collect()
    rows = [f"{'ships' if d.ships else 'used'}\t{d.kind}\t{d.name} {d.version}\t{d.licence}\t{d.source}" for d in found]
    Path(".local/licences.txt").write_text("\n".join(rows) + "\n")
    if findings := judge(found):
        print(*findings, sep="\n")
        sys.exit(f"licences: {len(findings)} findings: remove each, or explain it in tools/licences/policy.toml")
    for use in ("ships", "used"):
        counts = collections.Counter(row.split("\t")[1] for row in rows if row.startswith(use))
        print(f"licences: {use}:", ", ".join(f"{count} of {kind}" for kind, count in counts.items()))
    print(f"licences: tools/licences/policy.toml allows all {len(found)}; .local/licences.txt lists them")


if __name__ == "__main__":
    main()
