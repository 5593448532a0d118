#!/usr/bin/env python3
"""Counts the words of all pages, or lists the anchors that pages lost since a revision.

    words.py                  the words of each page, and the totals
    words.py --check          fails if a total is over its bound
    words.py --anchors REV    the headings and ids that the pages of REV have and those of the work tree have not

A printed block is between "<!-- printed: X -->" or "<!-- compared: X -->" and "<!-- end of X -->", or between
"<!-- X: begin -->" and "<!-- X: end -->": a test or a program prints it from the code, or compares each row of it.
All other text counts as prose, tables and code too.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md"]  # in a pathspec of git "*" matches folders too
MOST_PROSE = 70_700
MOST_PRINTED = 15_000

MARK = re.compile(r"<!-- (?:(?:printed|compared): .+|.+: begin) -->$")
END = re.compile(r"<!-- (?:end of .+|.+: end) -->$")
HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
EXPLICIT = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
LINK = re.compile(r"\]\([^()\s]+\)")


def count(text):
    """Returns the words of a page: of prose, and of printed blocks."""
    words, printed = [0, 0], False
    for line in text.splitlines():
        if MARK.match(line) or END.match(line):
            printed = bool(MARK.match(line))
        else:
            words[printed] += len(line.split())
    return words


def anchors(text):
    """Returns the anchors of a page: those that GitHub makes of its headings, and explicit ids."""
    found, seen, fenced = [], {}, False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        found += [] if fenced else EXPLICIT.findall(line)
        heading = None if fenced else HEADING.match(line)
        if heading:
            title = LINK.sub("", heading[2].replace("[", "")).lower()
            name = re.sub(r"[^\w -]", "", title).replace(" ", "-")
            times = seen[name] = seen.get(name, -1) + 1
            found.append(f"{name}-{times}" if times else name)
    return found


def git(*arguments):
    """Returns the output of git in this tree."""
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout


def page_names(revision=None):
    """Returns the names of all pages of the work tree, or of a revision."""
    if revision is None:
        names = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *PAGES).splitlines()
        return sorted(name for name in set(names) if (ROOT / name).exists())
    names = git("ls-tree", "-r", "--name-only", revision).splitlines()
    return [name for name in names if name in PAGES or re.fullmatch(r"docs/.*\.md", name)]


def print_words(check):
    """Prints the words of each page and the totals. Returns whether a total is over its bound that check asks for."""
    total = [0, 0]
    for name in page_names():
        words = count((ROOT / name).read_text(encoding="utf-8"))
        total = [a + b for a, b in zip(total, words)]
        if not check:
            print(f"{name:<36} {words[0]:>7,} words of prose {words[1]:>7,} printed")
    print(f"{'all pages':<36} {total[0]:>7,} words of prose {total[1]:>7,} printed")
    for words, most, kind in zip(total, (MOST_PROSE, MOST_PRINTED), ("prose", "printed blocks")):
        if check and words > most:
            print(f"the pages have {words:,} words of {kind}, at most {most:,} are allowed: shorten one", file=sys.stderr)
    return check and (total[0] > MOST_PROSE or total[1] > MOST_PRINTED)


def print_lost(revision):
    """Prints the anchors of a revision that no page, or only another page, has in the work tree."""
    now = {name: set(anchors((ROOT / name).read_text(encoding="utf-8"))) for name in page_names()}
    for name in page_names(revision):
        for anchor in anchors(git("show", f"{revision}:{name}")):
            if anchor not in now.get(name, ()):
                others = [page for page, has in now.items() if anchor in has]
                print(f"{name}#{anchor}: {'now on ' + ', '.join(others) if others else 'gone'}")


def main(arguments):
    """Runs one of the three forms above and returns the exit code."""
    if len(arguments) == 2 and arguments[0] == "--anchors":
        print_lost(arguments[1])
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if print_words(bool(arguments)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
