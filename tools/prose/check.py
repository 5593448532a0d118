"""Checks the language of the tree. vale applies the rules of styles/ to comments, texts and pages.

names.txt lists the words that no name declared in Go may have. README.md explains how to check some files only, and
how to add a rule or an exception.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

Finding = collections.namedtuple("Finding", "path line rule message")

# Code, a decision anchor, a documentation link, a comment, an address, or a command-line flag.
NOT_PROSE = re.compile("|".join((
    r"``.+?``|`[^`]+`",
    r'"[a-z0-9]+(-[a-z0-9]+)+"',
    r"\[\*?[A-Za-z]\w*(\.\w+)*\]([^(]|$)",
    r"<!--.*?-->",
    r'https?://[^\s)"]+',
    r"\B--?[a-z][a-z0-9-]+",
)), re.ASCII)
# The beginning of a block of Markdown: a list item, a heading or a quotation.
BLOCK = re.compile(r"(?a)([-*+>]|\d+[.)]|#+)\s")


def mask(text):
    """Replaces what is not prose by code, which counts as one word."""
    return NOT_PROSE.sub("`x`", text)


class Page:
    """The prose of one file. A paragraph, a list item or a table cell is a list of source lines with their texts."""

    def __init__(self, name):
        self.name = name
        self.paragraphs = []
        self.names = []  # line, kind and name of each declaration of a Go file
        self.open = False  # the last paragraph continues
        self.fenced = False  # inside a fenced code block

    def add(self, line, text):
        """Appends a line of Markdown or of a comment, without its comment marker."""
        trimmed = text.strip()
        if trimmed.startswith("```"):
            self.end()
            self.fenced = not self.fenced
        elif self.fenced or trimmed and not self.open and text.startswith(("\t", "    ")):
            return  # code
        elif trimmed.startswith("|"):
            for cell in mask(trimmed).split("|"):
                self.add_alone(line, cell)
        else:
            if not trimmed or BLOCK.match(trimmed):
                self.end()
            self.join(line, mask(trimmed))

    def add_alone(self, line, text):
        """Appends a text that is a paragraph of its own."""
        self.end()
        self.join(line, mask(" ".join(text.split())))
        self.end()

    def end(self):
        """Closes the last paragraph."""
        self.open = False

    def join(self, line, text):
        """Appends a text to the open paragraph, or opens one."""
        if text:
            if not self.open:
                self.paragraphs.append([])
            self.paragraphs[-1].append((line, text))
            self.open = True

    def texts(self):
        """Returns each paragraph as one line."""
        return [" ".join(text for _, text in paragraph) for paragraph in self.paragraphs]

    def source(self, paragraph, column):
        """Converts a column of a paragraph, from 1, to the line of the file."""
        found, offset = self.paragraphs[paragraph][0][0], 0
        for line, text in self.paragraphs[paragraph]:
            if offset < column:
                found = line
            offset += len(text) + 1
        return found


# The marker of a comment, by the name or the extension of a file. Markdown is prose as a whole.
MARKERS = dict.fromkeys(("Makefile", ".gitignore", ".shellcheckrc", ".cfnlintrc", ".yaml", ".yml", ".toml", ".sh",
                         ".py", ".txtar", ".txt"), "#") | dict.fromkeys((".mjs", ".ts", ".java", ".php"), "//")
SHEBANG = re.compile(r"(?a)#!.*\b(ba)?sh\b")
# A YAML field that people read, with its text or with the sign of a block that follows; and such a field in braces.
DESCRIBED = re.compile(r"(?a)(\s*(?:- )?)(?:Description|AlarmDescription|description|summary|title): *(.*)$")
DESCRIBED_INLINE = re.compile(
    r'(?a)\b(?:Description|description|summary|title): *("(?:[^"\\]|\\.)*"|[^"{}\[\],][^{},]*)')
ECHOED = re.compile(r"""(?a)\becho +(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def read(name, text):
    """Takes the prose out of a file. It returns None for a kind of file without prose."""
    page, lines, extension = Page(name), list(enumerate(text.split("\n"), 1)), os.path.splitext(name)[1]
    marker = MARKERS.get(os.path.basename(name)) or MARKERS.get(extension) or ("#" if SHEBANG.match(text) else None)
    if extension == ".md":
        for line, text in lines:
            page.add(line, text)
    elif marker is None:
        return None
    else:
        read_comments(page, lines, marker)
        (read_descriptions if extension in (".yaml", ".yml") else read_echoes)(page, lines)
    return page


def read_comments(page, lines, marker):
    """Takes comments that are whole lines, and those behind code."""
    for line, text in lines:
        trimmed = text.strip()
        if trimmed.startswith("-- ") and page.name.endswith(".txtar"):
            break  # the files of an archive
        if trimmed.startswith(marker) and not trimmed.startswith(marker + "!"):
            page.add(line, trimmed.lstrip(marker).removeprefix(" "))
        else:
            page.add_alone(line, text.partition(f" {marker} ")[2] or text.partition(" ## ")[2])
    page.end()


def read_descriptions(page, lines):
    """Takes the descriptions of a CloudFormation template or an OpenAPI document."""
    block = None  # the indentation of the field whose block is read
    for line, text in lines:
        if block is not None:
            if not text.strip() or len(text) - len(text.lstrip(" ")) > block:
                page.add(line, text.removeprefix(" " * (block + 2)))
                continue
            block = None
            page.end()
        field = DESCRIBED.match(text)
        if not field:
            for inline in DESCRIBED_INLINE.findall(text):
                page.add_alone(line, inline.strip('"'))
        elif field[2].startswith(("|", ">")):
            block = len(field[1])
        else:
            page.add_alone(line, field[2].strip("\"'"))
    page.end()


def read_echoes(page, lines):
    """Takes the texts that a script or a make target prints."""
    for line, text in lines:
        for double, single in ECHOED.findall(text):
            page.add_alone(line, double + single)


DIRECTIVE = re.compile(r"(?a)//(go:|line |export |[a-z]+:\S+( // )?)")
# A text for people: two words or more, and no JSON, HTML or list.
SENTENCE = re.compile(r"(?a)[^\[{<(]*[A-Za-z']{2,},? [A-Za-z']{2,}")


def read_go(pages, names):
    """Takes the comments, the texts and the declared names of the Go files of these names."""
    for row in run("go", "run", "./tools/prose", input="\n".join(names)).split("\n")[:-1]:
        item = json.loads(row)
        page, kind = pages[item["file"]], item["kind"]
        for line, text, raw in (found.values() for found in item["texts"]):
            if kind == "comments":
                add_comment(page, line, text)
            elif kind == "help":
                page.add_alone(line, text)
            elif kind != "strings":
                page.names.append((line, kind, text))
            elif SENTENCE.match(text):
                add_string(page, line, text, raw)
        page.end()


def add_comment(page, line, text):
    """Adds a comment without its markers; of a directive, only the reason behind it."""
    if DIRECTIVE.match(text):
        page.add_alone(line, text.partition(" // ")[2])
        return
    for at, part in enumerate(text.removeprefix("//").removeprefix("/*").removesuffix("*/").split("\n")):
        page.add(line + at, part.removeprefix(" "))


def add_string(page, line, text, raw):
    """Appends each line of a string to the open paragraph. Only a raw string has several lines in the file."""
    for at, part in enumerate(text.split("\n")):
        if at > 0:
            page.end()
        page.join(line + (at if raw else 0), mask(" ".join(part.split())))


# Test data, and the rules themselves.
NOT_CHECKED = re.compile(r"(?a)(^|.*/)testdata/|tools/prose/.*\.(txt|yml|ini)$")


def read_pages(paths):
    """Reads the prose of the files that git sees below the paths, or of the whole tree."""
    limits = ("--error-unmatch", "--", *paths) if paths else ()
    pages = {}
    for name in run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *limits).split("\0"):
        if NOT_CHECKED.match(name) or not os.path.isfile(name):
            continue
        if name.endswith(".go"):
            pages[name] = Page(name)
        elif page := read(name, read_text(name)):
            pages[name] = page
    if not pages:
        fail(f"no file with prose is below {paths}")
    read_go(pages, [name for name in pages if name.endswith(".go")])
    return list(pages.values())


def read_text(name):
    """Returns the text of a file. A byte that is not UTF-8 becomes a sign of its own."""
    return Path(name).read_bytes().decode(errors="replace")


def read_rows(file, fields):
    """Reads a file of rows whose fields are separated by " | ", without blank lines and comments."""
    rows = [line.split(" | ") for line in read_text(file).splitlines() if line and not line.startswith("#")]
    for row in rows:
        if len(row) != fields:
            fail(f"{file}: {row} has {len(row)} fields, not {fields}")
    return rows


def run_vale(pages):
    """Returns the findings of vale, each with its place in the tree."""
    program = run("go", "tool", "-n", "-modfile=tools/prose/vale/go.mod", "vale",
                  hint="check that the Go module proxy can be reached").strip()
    with tempfile.TemporaryDirectory() as folder:
        for i, page in enumerate(pages):
            Path(folder, f"{i}.md").write_text("".join(text + "\n\n" for text in page.texts()))
        alerts = json.loads(run(program, "--config", os.path.abspath("tools/prose/vale.ini"), "--no-global",
                                "--no-exit", "--output=JSON", ".", folder=folder))
    return [Finding(page.name, page.source(alert["Line"] // 2, alert["Span"][0]),
                    alert["Check"].removeprefix("Prose.").lower(), alert["Message"])
            for i, page in enumerate(pages) for alert in alerts.get(f"{i}.md", ())]


OFFENCES, CLEAN = "planted offences", "clean counterparts"


def plant(rows):
    """Returns a page of all planted offences and one of their counterparts. The index of a row is its line."""
    offences, clean = Page(OFFENCES), Page(CLEAN)
    for i, (_, _, offence, counterpart) in enumerate(rows):
        offences.add_alone(i, offence)
        clean.add_alone(i, counterpart)
    return [offences, clean]


def judge_planted(rows, found):
    """Names each planted offence that was not found, and each finding in a counterpart."""
    for i, (rule, message, offence, _) in enumerate(rows):
        if not any(f[:3] == (OFFENCES, i, rule) and message in f.message for f in found):
            yield f"vale does not find {rule} {message!r} in {offence!r}"
    for f in found:
        if f.path == CLEAN:
            yield f"vale finds {f.message!r} in the clean sentence {rows[f.line][3]!r}"


def check_names(rows, page):
    """Compares the names that a page declares with the rows of names.txt."""
    for line, kind, name in page.names:
        words = [word.lower() for word in re.findall("[A-Z]+[a-z]*|[a-z]+", name)]
        pairs = [first + second for first, second in zip(words, words[1:])]
        for banned, scope, instead in rows:
            scopes = set(scope.split())
            kinds, folders = scopes & {"func", "type"}, scopes - {"any", "whole", "func", "type"}
            parts = {"".join(words)} if "whole" in scopes else {*words, *pairs}
            applies = kind in (kinds or {kind}) and (not folders or any(page.name.startswith(f + "/") for f in folders))
            if applies and parts & set(banned.split()):
                yield Finding(page.name, line, "name", f"{name}: use {instead}")


def except_findings(rows, found):
    """Returns the findings that no row of exceptions.txt allows, and a finding for each row that allows nothing."""
    left, used = [], set()
    for f in found:
        line = "".join(read_text(f.path).split("\n")[f.line - 1:f.line])
        allowed = {i for i, (path, rule, text, _) in enumerate(rows)
                   if (f.path + "/").startswith(path + "/") and rule == f.rule and text in line}
        used |= allowed
        left += [] if allowed else [f]
    return left, [Finding("tools/prose/exceptions.txt", 1, "exception",
                          f"delete the unused row for {text!r} of the rule {rule} in {path}")
                  for i, (path, rule, text, _) in enumerate(rows) if i not in used]


def print_counts(found):
    """Prints how many findings each rule has in each directory."""
    counts = collections.Counter(f"{f.rule} {os.path.dirname(f.path) or '.'}" for f in found)
    counts.update(f"{f.rule} total" for f in found)
    for row in sorted(counts):
        print(f"{counts[row]:6} {row}")


def run(*command, folder=".", input="", hint="see its output"):
    """Returns what a command prints; ends the program when the command fails."""
    done = subprocess.run(command, cwd=folder, input=input, capture_output=True, encoding="utf-8")
    if done.returncode:
        fail(f"{' '.join(map(str, command[:4]))} failed: {hint}:\n{done.stdout}{done.stderr}")
    return done.stdout


def fail(reason):
    """Ends the program because the language cannot be checked."""
    sys.exit(f"prose: cannot check: {reason}")


def main():
    parser = argparse.ArgumentParser(description="Checks the language of the tree, or of the files below some paths.")
    parser.add_argument("--count", action="store_true", help="print the findings of each rule in each directory")
    parser.add_argument("paths", nargs="*", metavar="path")
    options = parser.parse_args()
    os.chdir(Path(__file__).absolute().parents[2])
    pages = read_pages(options.paths)
    planted, names = read_rows("tools/prose/planted.txt", 4), read_rows("tools/prose/names.txt", 3)
    found = run_vale(pages + plant(planted))
    if wrong := list(judge_planted(planted, found)):
        fail("correct tools/prose/styles or planted.txt:\n" + "\n".join(wrong))
    found = {f for f in found if f.path not in (OFFENCES, CLEAN)}
    found |= {f for page in pages for f in check_names(names, page)}
    found, unused = except_findings(read_rows("tools/prose/exceptions.txt", 4), found)
    found = sorted(found + ([] if options.paths else unused), key=lambda f: (f.path, f.line, f.rule + f.message))
    if options.count:
        print_counts(found)
    else:
        print(*(f"{f.path}:{f.line}: {f.rule}: {f.message}\n" for f in found), sep="", end="")
    if found:
        print(f"prose: {len(found)} findings: rewrite each as its message says (rules: tools/prose/README.md)")
        sys.exit(1)
    print(f"prose: 0 findings in {len(pages)} files; vale found all {len(planted)} planted offences")


if __name__ == "__main__":
    main()
