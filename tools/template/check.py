"""Checks every CloudFormation template with cfn-lint and checkov, as it is and with gradual deployment.

A suppression of checkov needs a reason, and a check that fails without it. Only .cfnlintrc has exceptions of cfn-lint.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import releases

# The default of the parameter that SAM resolves before cfn-lint and checkov see the template.
GRADUAL = r'(?m)^(  Gradual:\n    Type: String\n    Default: )"false"$'


def run(*command, findings=(0,)):
    """Returns what a command prints. Ends the program if the command fails for another reason than its findings."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in findings or done.returncode and not done.stdout:
        sys.exit(f"template: cannot check: {command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def find_templates():
    """Returns the templates that git sees, test data excepted, and their variants with gradual deployment.

    An empty file counts as a template, so that a template that lost its text is found.
    """
    names = run("git", "ls-files", "-co", "--exclude-standard", "*.yaml", "*.yml", "*.json", "*.template").splitlines()
    texts = {n: Path(n).read_text() for n in names if Path(n).exists() and "testdata" not in n.split("/")}
    declared = re.compile(r'(?m)^\s*"?(AWSTemplateFormatVersion|Transform)"?\s*:')
    found = [n for n in texts if declared.search(texts[n]) or not texts[n].strip()]
    return found + [write_variant("gradual", n, GRADUAL, r'\1"true"') for n in found if re.search(GRADUAL, texts[n])]


def write_variant(kind, name, pattern, replacement):
    """Writes a template with a pattern replaced below .local/template and returns its name."""
    file = Path(".local/template", kind, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(re.sub(pattern, replacement, Path(name).read_text()))
    return str(file)


def lint(files):
    """Returns the findings of cfn-lint."""
    found = [f"{n}: move ignore_checks to .cfnlintrc" for n in files if "ignore_checks" in Path(n).read_text()]
    return found + run(".local/tools/sam-cli/bin/cfn-lint", "--config-file", ".cfnlintrc", "--format", "parseable",
                       "--", *files, findings=range(0, 16, 2)).splitlines()


def audit(files):
    """Returns the findings of checkov. It also checks a variant of each template without suppressions.

    checkov has no check for CloudWatch, so a template with nothing else is left to cfn-lint.
    """
    files = [n for n in files if re.search(r"\bType\W+AWS::(?!CloudWatch::)", Path(n).read_text()) or "Resources" not in
             Path(n).read_text()]
    opened = {n: write_variant("open", n, r"\bcheckov:", "unheard:") for n in files}
    return judge(opened, json.loads(run(
        ".local/tools/checkov/bin/checkov", "--skip-download", "--framework", "cloudformation", "--output", "json",
        "--file", *opened, *opened.values(), findings=(0, 1))))


def judge(opened, report):
    """Returns what checkov found in the templates, and which of their suppressions are wrong."""
    if report["check_type"] != "cloudformation" or report["results"]["parsing_errors"]:
        sys.exit(f"template: cannot check: checkov cannot read the templates: {report['results']['parsing_errors']}")
    passed, failed, skipped = (report["results"][f"{kind}_checks"] for kind in ("passed", "failed", "skipped"))
    checked = {row["file_abs_path"] for row in passed + failed}
    found = [f"{n}: checkov checked no resource" for n in (*opened, *opened.values()) if n not in checked]
    place = "{file_abs_path}:{file_line_range[0]}: {resource} {check_id}".format_map
    found += [f"{place(row)}: {row['check_name']}" for row in failed if row["file_abs_path"] in opened]
    needed = {(row["file_abs_path"], row["resource"], row["check_id"]) for row in failed}
    for row in skipped:
        if len((row["check_result"].get("suppress_comment") or "").split()) < 4:  # "No comment provided" is none
            found.append(f"{place(row)} is suppressed without a reason")
        if (opened[row["file_abs_path"]], row["resource"], row["check_id"]) not in needed:
            found.append(f"{place(row)} is suppressed, and would pass")
    return found


def main():
    files = find_templates()
    if found := lint(files) + audit(files) + releases.check(files):
        print(*found, sep="\n")
        sys.exit(f"template: {len(found)} findings: fix the template, or suppress the check with its reason")
    print("template: cfn-lint and checkov find nothing in", *files)


if __name__ == "__main__":
    main()
