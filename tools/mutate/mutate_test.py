import unittest

from mutate import Coverage, Mutant, compare, function_at, mutate, table

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

    def test_function_at(self):
        for line, name, inside in ((3, "", range(0)), (8, "Take", range(5, 13)), (14, "none", range(14, 15))):
            self.assertEqual((name, inside), function_at(LINES, line))

    def test_coverage(self):
        constant, condition = mutant(3, b"*", "ARITHMETIC_BASE"), mutant(7, b">=", "CONDITIONALS_BOUNDARY")
        statement, other = mutant(8, b"==", "CONDITIONALS_NEGATION"), mutant(14, b"--", "INCREMENT_DECREMENT")
        profile = Coverage("".join(f"mobilegateway/shared/p/p.go:{block}\n" for block in (
            "5.35,6.9 1 1", "7.14,8.18 1 0", "10.2,11.14 2 1", "14.13,14.20 1 0")))
        for place, want in ((constant, True), (condition, True), (statement, False), (other, False)):
            self.assertEqual(want, profile.reaches(place, LINES), place)

    def test_table_and_minimums(self):
        def results(**counts):
            return {"shared/p": [{"result": name.replace("_", " ")} for name, n in counts.items() for _ in range(n)]}
        lines, below = table(results(own=90, simulator=5, survived=5, not_viable=7))
        self.assertEqual(("| shared/p | 100 | 100 % | 90 | 5 | 5 | 95 % |", []), (lines[2], below))
        self.assertEqual(1, len(table(results(own=94, uncovered=6))[1]))
        self.assertEqual(1, len(table(results(own=91, survived=9))[1]))

    def test_survivors_need_an_explanation(self):
        row = {"file": "shared/p/p.go", "line": 8, "function": "Take", "text": "return n-1 == 4", "type": "T"}
        reason = {key: value for key, value in row.items() if key != "line"} | {"reason": "equal"}
        lived, killed = {"shared/p": [row | {"result": "survived"}]}, {"shared/p": [row | {"result": "own"}]}
        for explanations, results, want in (
                ([reason], lived, ""), ([], lived, "survives"), ([reason], killed, "remove the row"),
                ([reason | {"reason": ""}], lived, "survives"), ([reason], {"shared/q": []}, "")):
            found = compare(explanations, results)
            self.assertEqual(bool(want), bool(found))
            self.assertIn(want, "".join(found))


if __name__ == "__main__":
    unittest.main()
