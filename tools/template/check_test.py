"""Tests of the template check: each offence is planted once."""
import contextlib
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import check
import releases

TOP = Path(__file__).parents[2]
REASON = "The next run repeats what this run could not finish"


class Judge(unittest.TestCase):
    """Plants findings of checkov in t.yaml, and in open/t.yaml, where no suppression counts."""

    def judge(self, passed=("t.yaml", "open/t.yaml"), failed=(), skipped=(), comment=""):
        rows = {kind: [self.row(name, resource, comment) for name in names] for kind, resource, names in (
            ("passed_checks", "Table", passed), ("failed_checks", "Queue", failed),
            ("skipped_checks", "Queue", skipped))}
        report = {"check_type": "cloudformation", "results": rows | {"parsing_errors": []}}
        return check.judge({"t.yaml": "open/t.yaml"}, report)

    def row(self, name, resource, comment):
        return {"check_id": "CKV_1", "check_name": "the name", "file_abs_path": name, "resource": resource,
                "file_line_range": [7, 9], "check_result": {"suppress_comment": comment}}

    def test_findings(self):
        both, template, opened = ["t.yaml", "open/t.yaml"], ["t.yaml"], ["open/t.yaml"]
        for name, findings, expected in (
            ("passed", self.judge(), []),
            ("failed", self.judge(failed=both), ["t.yaml:7: Queue CKV_1: the name"]),
            ("suppressed with a reason", self.judge(failed=opened, skipped=template, comment=REASON), []),
            ("suppressed without a reason", self.judge(failed=opened, skipped=template),
             ["t.yaml:7: Queue CKV_1 is suppressed without a reason"]),
            ("checkov's text for no reason", self.judge(failed=opened, skipped=template, comment="No comment provided"),
             ["t.yaml:7: Queue CKV_1 is suppressed without a reason"]),
            ("one word as the reason", self.judge(failed=opened, skipped=template, comment="todo"),
             ["t.yaml:7: Queue CKV_1 is suppressed without a reason"]),
            ("unused suppression", self.judge(skipped=template, comment=REASON),
             ["t.yaml:7: Queue CKV_1 is suppressed, and would pass"]),
            ("a template without resources", self.judge(passed=opened), ["t.yaml: checkov checked no resource"]),
        ):
            with self.subTest(name):
                self.assertEqual(findings, expected)

    def test_unreadable_report(self):
        broken = {"check_type": "cloudformation", "results": {"parsing_errors": ["t.yaml"]}}
        for report in ({"passed": 0, "failed": 0}, [{"check_type": "cloudformation"}], broken):
            with self.subTest(report), self.assertRaises((SystemExit, KeyError, TypeError)):
                check.judge({"t.yaml": "open/t.yaml"}, report)


class Files(unittest.TestCase):
    def test_variants(self):
        self.enterContext(contextlib.chdir(self.enterContext(tempfile.TemporaryDirectory())))
        subprocess.run(["git", "init", "-q"], check=True)
        declaration = 'AWSTemplateFormatVersion: "2010-09-09"\n'
        for name, text in {
            "template.yaml": declaration + 'Parameters:\n  Gradual:\n    Type: String\n    Default: "false"\n',
            "deploy/keys.json": '{\n "AWSTemplateFormatVersion": "2010-09-09"}',
            "deploy/other.yaml": "openapi: 3.1.0\n",
            "deploy/lost.yaml": "",
            "testdata/a.yaml": declaration,
            "deploy/sam.template": "Transform: AWS::Serverless-2016-10-31\n",
        }.items():
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            Path(name).write_text(text)
        gradual = ".local/template/gradual/template.yaml"
        self.assertEqual(sorted(check.find_templates()),
                         [gradual, "deploy/keys.json", "deploy/lost.yaml", "deploy/sam.template", "template.yaml"])
        self.assertIn('\n    Default: "true"\n', Path(gradual).read_text())

    def test_lint_finds_planted_offences(self):
        self.enterContext(contextlib.chdir(TOP))
        with tempfile.TemporaryDirectory() as folder:
            planted = Path(folder, "planted.yaml")
            planted.write_text("Metadata: {cfn-lint: {config: {ignore_checks: [W1]}}}\n"
                               "Resources: {A: {Type: AWS::No::Type}}\n")
            self.assertRegex("\n".join(check.lint([str(planted)])), "(?s)move ignore_checks.*E3006")

    def test_lint_exceptions_have_reasons(self):
        _, found, rows = (TOP / ".cfnlintrc").read_text().partition("\nignore_checks:\n")
        self.assertTrue(found, ".cfnlintrc needs ignore_checks on a line of its own")
        for row in rows.splitlines():
            self.assertRegex(row, r"^  - [A-Z][0-9]{4} # .{15,}$")


class Releases(unittest.TestCase):
    def test_template(self):
        self.enterContext(contextlib.chdir(TOP))
        self.assertEqual(releases.check(["template.yaml"]), [])
        self.assertEqual(releases.check(["deploy/waf.yaml"]), ["template.yaml is missing"])

    def test_gradual(self):
        self.enterContext(contextlib.chdir(TOP))
        for gradual, groups in (("false", 0), ("true", 11)):
            with self.subTest(gradual):
                found = releases.resources("0123456789", gradual)
                self.assertEqual(len(releases.kinds(found, "CodeDeploy::DeploymentGroup")), groups)
                self.assertEqual(len(releases.kinds(found, "Lambda::Alias")), 11)

    def test_plain_sam_overlooks_settings(self):
        """The gap that docs/deploy.md names: SAM's own hash has no parameter, so the alias keeps the old settings."""
        self.enterContext(contextlib.chdir(TOP))
        off, on = (releases.resources(None, "false", PackResponses=value) for value in ("no", "yes"))
        self.assertEqual(releases.kinds(off, "Lambda::Version"), releases.kinds(on, "Lambda::Version"))

    def test_compare(self):
        def release(version, description, policy=("SecurityPolicy", "EndpointAccessMode"), keep="Retain"):
            return {"F": {"Type": "AWS::Lambda::Function", "Properties": {"Description": description}},
                    f"FVersion{version}": {"Type": "AWS::Lambda::Version", "DeletionPolicy": keep},
                    "FAliaslive": {"Type": "AWS::Lambda::Alias"},
                    "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": dict.fromkeys(policy, "a")}}
        function = {"F": release(1, "1")["F"]}
        for name, first, second, finding in (
            ("two versions", release(1, "one"), release(2, "two"), "^$"),
            ("one version name", release(1, "one"), release(1, "two"), "FVersion1 is one version"),
            ("an unchanged function", release(1, "one"), release(2, "one"), "F is the same in two releases"),
            ("no version", function, release(2, "two"), "F has no version"),
            ("no alias", function, release(2, "two"), "F has no alias live"),
            ("a lost version", release(1, "one", keep="Delete"), release(2, "two"), "FVersion1 is deleted"),
            ("no security policy", release(1, "one", ()), release(2, "two"), "Api loses its security policy"),
            ("no function", {}, {}, "there is no function"),
        ):
            with self.subTest(name):
                self.assertRegex("\n".join(releases.compare(first, second)), finding)

    def test_equal_and_shift(self):
        one, two = ({f"FVersion{n}": {"Type": "AWS::Lambda::Version"}} for n in (1, 2))
        self.assertEqual(releases.equal(one, one), [])
        self.assertEqual(len(releases.equal(one, two)), 2)
        once = {"A": {"Type": "AWS::Lambda::Alias"}}
        steps = {"A": {"Type": "AWS::Lambda::Alias", "UpdatePolicy": {"CodeDeployLambdaAliasUpdate": {}}}}
        self.assertEqual(releases.shift(once, False) + releases.shift(steps, True), [])
        self.assertEqual(releases.shift(once, True), ["A moves at once with Gradual=true"])
        self.assertEqual(releases.shift(steps, False), ["A moves gradually with Gradual=false"])


if __name__ == "__main__":
    unittest.main()
