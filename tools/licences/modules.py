"""Reads the licences of Go modules from their texts.

A module names no licence, and go-licenses has no usable release. The classifier of texts is google/licenseclassifier.
"""
import collections
import hashlib
import json
import re
import tempfile
from pathlib import Path

from commands import fail, run

LICENCE_FILE = re.compile(r"(un)?(licen[cs]es?|copying)([.-].*)?", re.I)
MIN_CONFIDENCE = 0.9  # the part of a text that must be the licence's
LINKED = "{{if .Standard}}std\t{{.Root}}{{else}}{{.Module.Main}}\t{{.Module.Dir}}{{end}}\t{{.Dir}}"


def licence_files(folder, root):
    """Returns the licence files of a folder and of its parents up to root."""
    files = {f for f in Path(folder).iterdir() if f.is_file() and LICENCE_FILE.fullmatch(f.name) and f.suffix != ".go"}
    return files if folder == root else files | licence_files(str(Path(folder).parent), root)


def classify(files):
    """Returns the licences of each file. A text that is not known is named by its hash."""
    names = sorted(map(str, files))
    with tempfile.NamedTemporaryFile() as report:
        run("go", "tool", "-modfile=tools/classify/go.mod", "identify_license", "-json=" + report.name, *names)
        rows = {row["Filepath"]: row["Classifications"] for row in json.load(report)}
    found = {}
    for file in files:
        sure = {c["Name"] for c in rows.get(str(file), []) if c["Confidence"] >= MIN_CONFIDENCE} - {"Copyright"}
        found[file] = sure or {f"unknown text {file.name} {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"}
    return found


def linked():
    """Returns the licence files of each module that the deployed functions link, by the module's folder.

    Files in the folders of linked packages count too. The standard library is one of the modules.
    """
    texts = collections.defaultdict(set)
    rows = run("go", "list", "-deps", "-tags=lambda.norpc", "-f", LINKED, "./functions/...",
               CGO_ENABLED="0", GOOS="linux")
    for kind, root, folder in (row.split("\t") for row in rows.splitlines()):
        if kind != "true":  # the main module
            texts[root] |= licence_files(folder, root)
    if len(texts) < 2:
        fail("the functions link no module, so the list of what ships is wrong")
    return texts


def read_modules(lists):
    """Yields the name, version, licences, list and whether it ships, of each module of each go.mod."""
    texts, rows = linked(), []
    shipped = set(texts)
    for source in lists:
        modules = run("go", "mod", "download", "-json", folder=Path(source).parent)
        for row in json.loads("[" + modules.replace("}\n{", "},{") + "]"):
            texts[row["Dir"]] |= licence_files(row["Dir"], row["Dir"])
            rows.append((row["Path"], row["Version"], row["Dir"], source, source == "go.mod" and row["Dir"] in shipped))
    version, root = run("go", "env", "GOVERSION", "GOROOT").split()
    rows.append(("standard library", version, root, "go.mod", True))
    known = classify(set().union(*texts.values()))
    for name, version, folder, source, ships in rows:
        licences = sorted(set().union(*(known[file] for file in texts[folder])))
        unknown = [licence for licence in licences if licence.startswith("unknown text")]
        yield name, version, unknown[:1] or licences, source, ships
