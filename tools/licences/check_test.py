"""Tests of the licence check. Each kind of package is planted once with a licence that the policy forbids."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check
import modules
import policy
from commands import run
from policy import Dependency

TOP = Path(__file__).parents[2]


class InFolder(unittest.TestCase):
    """Runs each test in an empty folder."""

    def setUp(self):
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.enterContext(contextlib.chdir(self.top))

    def write(self, name, text=""):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


class Judge(unittest.TestCase):
    def test_expressions(self):
        rules = {"shipped": {"MIT": "-", "Apache-2.0": "-", "GPL-2.0-only WITH Classpath-exception-2.0": "-"}}
        for expression, allowed in {
            "MIT": True, "AGPL-3.0": False, "MIT OR AGPL-3.0": True, "MIT AND AGPL-3.0": False,
            "AGPL-3.0 OR MIT AND Apache-2.0": True, "(AGPL-3.0 OR MIT) AND BUSL-1.1": False,
            "AGPL-3.0 AND (MIT OR Apache-2.0)": False, "GPL-2.0-only WITH Classpath-exception-2.0": True,
            "GPL-2.0-only": False, "MIT WITH Commons-Clause": False, "": False, "MIT Apache-2.0": False, "(MIT": False,
            "MIT OR": False, "MIT)": False, "See LICENSE": False, "MIT; commercial": False,
        }.items():
            with self.subTest(expression):
                why = policy.refuse(Dependency("go", "p", "1", expression, "go.mod", True), rules)
                self.assertEqual(why == "", allowed, why)

    def test_policy_rules(self):
        rules = {"shipped": {"MIT": "-"}, "tools": {"MPL-2.0": "-"}, "exceptions": [
            {"kind": "npm", "name": "odd", "says": "Odd 1"},
            {"kind": "go", "name": "linked", "says": "Odd 2", "ships": True}]}
        for name, row, finding in (
            ("allowed", ("go", "p", "1", "MIT", "-", True), ""),
            ("allowed for tools", ("go", "p", "1", "MPL-2.0", "-"), ""),
            ("not allowed in what ships", ("go", "p", "1", "MPL-2.0", "-", True), "not allowed in what ships"),
            ("not allowed", ("go", "p", "1", "BUSL-1.1", "-"), "not allowed"),
            ("unknown text", ("go", "p", "1", "Do as you please", "-"), "not allowed"),
            ("no licence", ("go", "p", "1", "", "-"), "names no licence"),
            ("exception", ("npm", "odd", "1", "Odd 1", "-"), ""),
            ("exception for another text", ("npm", "odd", "1", "Odd 9", "-"), "not allowed"),
            ("exception for tools, and it ships", ("npm", "odd", "1", "Odd 1", "-", True), "not allowed in what ships"),
            ("exception for what ships", ("go", "linked", "1", "Odd 2", "-", True), ""),
            ("exception of another kind", ("go", "odd", "1", "Odd 1", "-"), "not allowed"),
        ):
            with self.subTest(name):
                findings = [f for f in policy.judge([Dependency(*row)], rules) if not f.startswith("no dependency")]
                self.assertEqual(len(findings), 1 if finding else 0, findings)
                self.assertIn(finding, "".join(findings))
        self.assertEqual(len(policy.judge([], rules)), 2, "two exceptions are unused")

    def test_policy_has_reasons(self):
        for name, why in (policy.POLICY["shipped"] | policy.POLICY["tools"]).items():
            self.assertGreater(len(why), 10, name)
        for row in policy.POLICY["exceptions"]:
            self.assertGreater(len(row["why"]), 10, row["name"])
        for name, licence in policy.SPELLINGS.items():
            self.assertEqual(name, name.lower())
            self.assertEqual(policy.refuse(Dependency("go", "p", "1", licence, "-"), policy.POLICY), "")


class Planted(InFolder):
    """Plants a package of each kind under BUSL-1.1 or AGPL-3.0.

    The proof for Maven is the exception of DynamoDB Local: it is a finding if it is not needed.
    """

    def assert_refused(self, dependency):
        findings = policy.judge([dependency], policy.POLICY | {"exceptions": []})
        self.assertRegex("".join(findings), "planted .*not allowed")

    def test_go(self):
        classifier = json.loads(run("go", "mod", "download", "-modfile=tools/classify/go.mod", "-json",
                                    "github.com/google/licenseclassifier/v2", folder=TOP))
        self.write("LICENSE", Path(classifier["Dir"], "assets/License/AGPL-3.0/license.txt").read_text())
        self.write("COPYING", "Do as you please.")
        file, unknown = self.top / "LICENSE", self.top / "COPYING"
        os.chdir(TOP)
        found = modules.classify({file, unknown})
        self.assert_refused(Dependency("go", "planted", "1", check.join(found[file], "AND"), "go.mod"))
        self.assertRegex("".join(found[unknown]), "^unknown text COPYING [0-9a-f]{12}$")

    def test_npm(self):
        os.chdir(TOP)
        checker = check.install_npm("tools/licences")
        os.chdir(self.top)
        rows = {"": {"license": "UNLICENSED"}, "node_modules/own": {"link": True},
                "node_modules/planted": {"version": "1.0.0", "license": "MIT"},  # the lock is wrong
                "node_modules/planted/node_modules/@other/system": {"version": "2.0.0", "license": "BUSL-1.1"},
                "node_modules/silent": {"version": "3.0.0"}}
        self.write("package.json", '{"name": "own", "dependencies": {"planted": "1.0.0"}}')
        self.write("package-lock.json", json.dumps({"packages": rows}))
        self.write("node_modules/planted/package.json",
                   '{"name": "planted", "version": "1.0.0", "license": "BUSL-1.1"}')
        with mock.patch.object(check, "install_npm", side_effect=[checker, self.top]):
            found = list(check.read_npm(["package-lock.json"]))
        self.assertEqual([d[1:4] for d in found], [
            ("planted", "1.0.0", "BUSL-1.1"), ("@other/system", "2.0.0", "BUSL-1.1"), ("silent", "3.0.0", "")])
        self.assert_refused(found[0])

    def test_python(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "planted"], check=True)
        place = next(Path("planted/lib").glob("python*/site-packages"))
        head = "Metadata-Version: 2.4\nName: {}\nVersion: 1.0\n"
        classifier = "Classifier: License :: OSI Approved :: {}\n"
        for name, text in {
            "planted": "License-Expression: BUSL-1.1\nLicense: MIT\n",
            "a.choice": "License-Expression: MIT OR Apache-2.0\n",
            "name": "License: The MIT License\n",
            "classes": "".join(map(classifier.format, ("BSD License", "Apache Software License"))),
            "description": "\nLicense: MIT\n",
        }.items():
            self.write(place / f"{name}-1.0.dist-info/METADATA", head.format(name) + text)
        found = check.read_environment("planted")
        self.assertEqual({name: licence for name, (_, licence) in found.items()}, {
            "planted": "BUSL-1.1", "a-choice": "MIT OR Apache-2.0", "name": "MIT",
            "classes": "Apache-2.0 AND LicenseRef-BSD", "description": "UNKNOWN"})
        self.assert_refused(Dependency("python", "planted", *found["planted"], "-"))


class Lists(InFolder):
    def test_licence_files(self):
        for name in ("LICENSE", "licence.md", "UNLICENSE", "COPYING.LESSER", "LICENSE-MIT", "LICENSES.txt", "NOTICE",
                     "license.go", "licensee.txt", "linked/package/LICENSE"):
            self.write(name)
        self.assertEqual(sorted(f.name for f in modules.licence_files(str(self.top), str(self.top))),
                         ["COPYING.LESSER", "LICENSE", "LICENSE-MIT", "LICENSES.txt", "UNLICENSE", "licence.md"])
        self.assertEqual(len(modules.licence_files(f"{self.top}/linked/package", str(self.top))), 7)

    def test_unread_list_is_refused(self):
        subprocess.run(["git", "init", "-q"], check=True)
        self.write("web/testdata/yarn.lock")
        self.assertEqual(check.collect(), [])
        self.write("web/yarn.lock")
        with self.assertRaisesRegex(SystemExit, "web/yarn.lock has no reader"):
            check.collect()


if __name__ == "__main__":
    unittest.main()
