import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from mutate import Mutant, compare, function_at, mutate, operator_at, place, table

SOURCE = b"""package p

const wait = 5 * time.Second

func (b *Book) Take(n int) bool {
\tswitch {
\tcase n >= 3:
\t\treturn n-1 == 4
\t}
\tn++
\treturn false
}

func none() { n-- }
"""
LINES = SOURCE.split(b"\n")


PROGRAM = b"""package main

import "fmt"

const size = 2 * 3

func f(n int) (result int) {
\tdefer func() {
\t\tif recover() != nil {
\t\t\tresult = -n
\t\t}
\t}()
\tn++
\tif n-size >= 1 == (n > 2) {
\t\tpanic("recovered")
\t}
\treturn n % 4
}

func main() { fmt.Println(f(0), f(1), f(2), f(6), f(7), "a"+"b") }
"""
OPERATORS = (
    (5, b"*", "ARITHMETIC_BASE"), (9, b"!=", "CONDITIONALS_NEGATION"), (10, b"-", "INVERT_NEGATIVES"),
    (13, b"++", "INCREMENT_DECREMENT"), (14, b"-", "ARITHMETIC_BASE"), (14, b">=", "CONDITIONALS_BOUNDARY"),
    (14, b">=", "CONDITIONALS_NEGATION"), (14, b"==", "CONDITIONALS_NEGATION"), (14, b"> 2", "CONDITIONALS_BOUNDARY"),
    (17, b"%", "ARITHMETIC_BASE"), (20, b"+", "ARITHMETIC_BASE"))


def mutant(line, operator, kind):
    return Mutant("shared/p/p.go", line, LINES[line - 1].index(operator) + 1, kind)


class MutateTest(unittest.TestCase):
    def test_mutate(self):
        for line, old, kind, new in (
                (3, b"*", "ARITHMETIC_BASE", b"const wait = 5 / time.Second"),
                (7, b">=", "CONDITIONALS_BOUNDARY", b"\tcase n > 3:"),
                (7, b">=", "CONDITIONALS_NEGATION", b"\tcase n < 3:"),
                (8, b"-", "INVERT_NEGATIVES", b"\t\treturn n+1 == 4"),
                (8, b"==", "CONDITIONALS_NEGATION", b"\t\treturn n-1 != 4"),
                (10, b"++", "INCREMENT_DECREMENT", b"\tn--")):
            with self.subTest(kind, line=line):
                changed = mutate(SOURCE, mutant(line, old, kind)).split(b"\n")
                self.assertEqual([(line, new)], [
                    (n + 1, text) for n, text in enumerate(changed) if text != LINES[n]])
        with self.assertRaises(ValueError):
            mutate(SOURCE, Mutant("shared/p/p.go", 1, 1, "ARITHMETIC_BASE"))

    def test_instrument(self):
        """A program with a choice behaves as one that is built with the mutation."""
        def go(*command, **options):
            return subprocess.run(command, text=True, capture_output=True, **options)

        lines = PROGRAM.split(b"\n")
        mutants = [Mutant("p/main.go", line, lines[line - 1].index(operator) + 1, kind)
                   for line, operator, kind in OPERATORS]
        places = [{"id": i, "file": m.file, "line": m.line, "column": m.column, "operator": operator_at(PROGRAM, m)[1]}
                  for i, m in enumerate(mutants)]
        with tempfile.TemporaryDirectory() as folder:
            file, tool = Path(folder, "p/main.go"), str(Path(folder, "instrument"))
            file.parent.mkdir()
            Path(folder, "go.mod").write_text("module mobilegateway\n\ngo 1.26\n")
            file.write_bytes(PROGRAM)
            built = go("go", "build", "-o", tool, "./instrument", cwd=Path(__file__).parent)
            self.assertEqual("", built.stderr)
            done = go(tool, input=json.dumps(places), cwd=folder)
            self.assertEqual(("[0,1,10]\n", ""), (done.stdout, done.stderr))
            self.assertEqual("", go("go", "build", "-o", "all", "./p", cwd=folder).stderr)
            for i, one in enumerate(mutants):
                if i in (0, 1, 10):
                    continue
                file.write_bytes(mutate(PROGRAM, one))
                want = go("go", "run", "./p", cwd=folder).stdout
                got = go("./all", cwd=folder, env=os.environ | {"MUTANT": str(i)}).stdout
                self.assertEqual(want, got, one)
                self.assertNotEqual(go("./all", cwd=folder).stdout, got, one)

    def test_function_at(self):
        for line, name in ((3, ""), (8, "Take"), (14, "none")):
            self.assertEqual(name, function_at(LINES, line))

    def test_table_and_minimums(self):
        row = {"file": "f", "function": "F", "text": "t", "type": "T"}

        def results(**counts):
            return {"shared/p": [row | {"result": name.replace("_", " ")} for name, n in counts.items()
                                 for _ in range(n)]}
        for explanations, explained in ((set(), 0), ({("f", "F", "t", "T")}, 6)):
            lines, below = table(results(own=90, simulator=4, survived=5, uncovered=1, not_viable=7),
                                 {"shared/p": 61.4}, explanations)
            self.assertEqual((f"| shared/p | 100 | 99 % | 95 % | 90 | 4 | 6 | {explained} | 61 |", []),
                             (lines[2], below))
        self.assertEqual(1, len(table(results(own=94, uncovered=6), {"shared/p": 0}, set())[1]))
        self.assertEqual(1, len(table(results(own=91, survived=9), {"shared/p": 0}, set())[1]))

    def test_survivors_need_an_explanation(self):
        row = {"file": "shared/p/p.go", "line": 8, "function": "Take", "text": "return n-1 == 4", "type": "T"}
        reason = ("shared/p/p.go", "Take", "return n-1 == 4", "T")
        lived, killed = {"shared/p": [row | {"result": "survived"}]}, {"shared/p": [row | {"result": "own"}]}
        for explanations, results, want in (
                ({reason}, lived, ""), (set(), lived, "survives"), ({reason}, killed, "remove the row"),
                ({reason}, {"shared/q": []}, "")):
            found = compare(explanations, results)
            self.assertEqual(bool(want), bool(found))
            self.assertIn(want, "".join(found))

    def test_place_has_line_and_text(self):
        row = {"file": "f", "line": 8, "column": 2, "type": "T", "text": "t", "function": "F", "result": "own"}
        self.assertEqual(place(row), place(row | {"result": "survived"}))
        for name, other in (("line", 9), ("text", "u"), ("type", "U")):
            self.assertNotEqual(place(row), place(row | {name: other}))


if __name__ == "__main__":
    unittest.main()
