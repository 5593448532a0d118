"""Judges licences by policy.toml."""
import collections
import re
import tomllib
from pathlib import Path

from license_expression import ExpressionError, get_spdx_licensing

POLICY = tomllib.loads(Path(__file__).with_name("policy.toml").read_text())
SPELLINGS = {name: licence for licence, names in POLICY["spellings"].items() for name in names}
SPDX = get_spdx_licensing()
Dependency = collections.namedtuple("Dependency", "kind name version licence source ships", defaults=(False,))


def spell(name):
    """Returns the SPDX identifier of a licence's known name, and any other text unchanged."""
    name = " ".join(name.split())
    return SPELLINGS.get(name.lower(), name)


def join(names, operator):
    """Makes one SPDX expression of several licences."""
    parts = list(dict.fromkeys(filter(None, map(spell, names))))
    if len(parts) > 1:
        parts = [f"({part})" if re.search(" (OR|AND) ", part) else part for part in parts]
    return f" {operator} ".join(parts)


def allows(licences, expression):
    """Evaluates an SPDX expression: one side of OR and both sides of AND must be among the licences."""
    if not hasattr(expression, "operator"):
        return expression in [SPDX.parse(licence) for licence in licences]
    return {"OR": any, "AND": all}[expression.operator.strip()](allows(licences, side) for side in expression.args)


def refuse(dependency, policy):
    """Returns why the policy refuses a dependency's licence, "" if it allows it."""
    if not dependency.licence:
        return "names no licence that can be read"
    licences = policy["shipped"] if dependency.ships else policy["shipped"] | policy["tools"]
    try:
        if allows(licences, SPDX.parse(dependency.licence)):
            return ""
    except ExpressionError:
        pass
    return f"the licence {dependency.licence!r} is not allowed" + " in what ships" * dependency.ships


def judge(found, policy=POLICY):
    """Returns the findings: refused dependencies without an exception, and exceptions that no dependency needs."""
    findings, unused = [], list(policy["exceptions"])
    for d in found:
        if why := refuse(d, policy):
            rows = [e for e in policy["exceptions"] if (e["kind"], e["name"], e["says"]) == (d.kind, d.name, d.licence)]
            rows = [e for e in rows if e.get("ships") or not d.ships]
            unused = [e for e in unused if e not in rows]
            if not rows:
                findings.append(f"{d.kind} {d.name} {d.version} ({d.source}): {why}")
    return findings + [f"no dependency needs the exception of {e['kind']} {e['name']}, {e['says']!r}" for e in unused]
