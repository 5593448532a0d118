"""Tests of the language check. Each run of check.py also proves that vale finds what planted.txt plants."""
import contextlib
import re
import unittest
from pathlib import Path

import check
from check import Finding

TOP = Path(__file__).parents[2]
DATA = "tools/prose/testdata/"


class InTree(unittest.TestCase):
    def setUp(self):
        self.enterContext(contextlib.chdir(TOP))


class Read(InTree):
    def test_paragraphs(self):
        """Compares the lines that each paragraph comes from, and its text, in one file of each kind."""
        for name, expected in {
            "page.md": ["1 # A heading of a page",
                        "3,4 The first line of a paragraph and the second, with `x` and decision `x`.", "6 Cell one",
                        "6 Cell `x` two", "7 ---", "7 ---", "8,9 - An item of a list that continues.", "16 `x`"],
            "template.yaml": ["1,2 A comment of two lines.", "6 behind a value", "4,5 A folded text of two lines.",
                              "7 In braces."],
            "script.sh": ["2 A comment.", "3 A text to print"],
            "story.txtar": ["1 A comment of a story."],
        }.items():
            with self.subTest(name):
                self.assertEqual(self.paragraphs(check.read(name, Path(DATA, name).read_text())), expected)
        self.assertIsNone(check.read("data.json", "{}"))

    def test_go(self):
        """Reads a Go file that is stored as text, so that no tool takes it for code of the tree."""
        name = DATA + "code.go.txt"
        page = check.Page(name)
        check.read_go({name: page}, [name])
        self.assertEqual(self.paragraphs(page), [
            "1 Package code is documented.", "13 a reason of three words", "10 The name of it.",
            "14,15 a long text: %w in two parts"])
        self.assertEqual(page.names, [(4, "name", "code"), (9, "type", "answerStatus"), (10, "name", "Name"),
                                      (13, "func", "settle"), (18, "name", "query")])

    def paragraphs(self, page):
        return [",".join(str(line) for line, _ in paragraph) + " " + text
                for paragraph, text in zip(page.paragraphs, page.texts())]

    def test_source(self):
        """Converts a column of a joined paragraph to the line that it comes from."""
        page = check.Page("a.md")
        page.add(7, "first line")
        page.add(8, "second line")
        self.assertEqual([page.source(0, column) for column in (1, 10, 12, 20)], [7, 7, 8, 8])


class Names(InTree):
    def found(self, name, kind="name", folder="shared"):
        page = check.Page(folder + "/x.go")
        page.names = [(1, kind, name)]
        return list(check.check_names(check.read_rows("tools/prose/names.txt", 3), page))

    def test_offences(self):
        """Declares every word of the table by itself and inside a longer name."""
        for banned, scope, _ in check.read_rows("tools/prose/names.txt", 3):
            scopes = scope.split()
            kind = next((s for s in scopes if s in ("func", "type")), "name")
            folder = next((s for s in scopes if s not in ("any", "whole", "func", "type")), "shared")
            for word in banned.split():
                longer = () if "whole" in scopes else (word + "Status", "last" + word.title())
                for name in (word, word.title(), *longer):
                    self.assertTrue(self.found(name, kind, folder), f"{name} is not found")

    def test_clean_names(self):
        """Declares names that only resemble a word of the table."""
        for kind, names in {"name": "handler threshold display returns dryRun placeholder word note",
                            "func": "live", "type": "fast"}.items():
            for name in names.split():
                self.assertEqual(self.found(name, kind), [])


class Planted(InTree):
    def test_every_rule_is_planted(self):
        planted = check.read_rows("tools/prose/planted.txt", 4)
        styles = list(Path("tools/prose/styles/Prose").glob("*.yml"))
        self.assertTrue(styles)
        for style in styles:
            text = style.read_text()
            messages = [message for rule, message, _, _ in planted if rule == style.stem.lower()]
            for instead in re.findall("(?m)^  '.*': (.+)$", text):
                self.assertTrue(any(message in "use " + instead for message in messages),
                                f"{style}: no offence of {instead!r} is planted")
            self.assertGreaterEqual(len(messages), max(text.count("\n  - "), 1), style)

    def test_findings(self):
        rows = [("term", "use fix", "A", "B")]
        offence = Finding(check.OFFENCES, 0, "term", "'a': use fix")
        missing = "vale does not find term 'use fix' in 'A'"
        for name, found, expected in (
            ("found", [offence, Finding("docs/a.md", 3, "term", "'b': use notify")], []),
            ("nothing found", [], [missing]),
            ("another rule", [offence._replace(rule="length")], [missing]),
            ("another message", [offence._replace(message="'b': use notify")], [missing]),
            ("counterpart found", [offence, offence._replace(path=check.CLEAN)],
             ["""vale finds "'a': use fix" in the clean sentence 'B'"""]),
        ):
            with self.subTest(name):
                self.assertEqual(list(check.judge_planted(rows, found)), expected)


class Exceptions(InTree):
    def test_except_findings(self):
        """Allows what a row names, and reports a row that allows nothing."""
        folder = DATA.rstrip("/")
        excepted = Finding(DATA + "page.md", 3, "term", "x")
        kept = [excepted._replace(line=4), excepted._replace(rule="verb"), excepted._replace(path="README.md")]
        rows = [(folder, "term", "first line", "a reason"), (DATA + "page.md", "length", "heading", "unused")]
        left, unused = check.except_findings(rows, [*kept, excepted])
        self.assertEqual(left, kept)
        self.assertEqual([f.message for f in unused],
                         [f"delete the unused row for 'heading' of the rule length in {DATA}page.md"])


if __name__ == "__main__":
    unittest.main()
