"""Checks what SAM makes of template.yaml in two releases, which cfn-lint and checkov do not see."""
import logging
import os
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

TEMPLATE = "template.yaml"
POLICY = {"SecurityPolicy", "EndpointAccessMode"}  # of an API: without it, API Gateway accepts TLS 1.0
SHIFT = "CodeDeployLambdaAliasUpdate"


def check(files):
    """Returns what is wrong with two releases of template.yaml, at once and gradually."""
    if TEMPLATE not in files:
        return [f"{TEMPLATE} is missing"]
    found = []
    for gradual in ("false", "true"):
        first, second = (resources(code, gradual) for code in ("0123456789first", "1234567890second"))
        found += compare(first, second) + equal(first, resources("0123456789first", gradual))
        found += shift(first, gradual == "true")
    return [f"{TEMPLATE}: {finding}" for finding in found]


def resources(code, gradual, **parameters):
    """Returns what SAM makes of the template, with a code hash as `make deploy` writes it, or None for plain SAM."""
    logging.disable()  # the transform reports its own features
    os.environ["AWS_DEFAULT_REGION"] = "eu-west-1"
    template = yaml_parse(Path(TEMPLATE).read_text())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
            if code:
                resource["Properties"]["AutoPublishCodeSha256"] = code
    policies = type("NoPolicies", (), {"load": lambda self: {}})()
    return transform(template, parameters | {"Gradual": gradual, "AWS::Region": "eu-west-1"}, policies)["Resources"]


def kinds(release, kind):
    """Returns the names of the resources of a kind."""
    return [name for name, resource in release.items() if resource["Type"] == f"AWS::{kind}"]


def compare(first, second):
    """Returns what is wrong with two releases. Lambda publishes a version only of a function that has changed."""
    functions, versions = kinds(first, "Lambda::Function"), kinds(first, "Lambda::Version")
    found = [] if functions else ["there is no function"]
    for name in functions:
        if first[name] == second.get(name):
            found.append(f"{name} is the same in two releases: Lambda publishes no version of it")
        if not any(version.startswith(name + "Version") for version in versions):
            found.append(f"{name} has no version")
        if f"{name}Aliaslive" not in first:
            found.append(f"{name} has no alias live")
    for name in versions:
        if name in second:
            found.append(f"{name} is one version for two releases")
        if first[name].get("DeletionPolicy") != "Retain":
            found.append(f"{name} is deleted by the next release: a rollback needs it")
    for name in kinds(first, "ApiGateway::RestApi"):
        if not POLICY <= first[name]["Properties"].keys():
            found.append(f"{name} loses its security policy: API Gateway would accept TLS 1.0")
    return found


def equal(first, second):
    """Returns the versions that a second deployment of equal code publishes."""
    changed = set(kinds(first, "Lambda::Version")) ^ set(kinds(second, "Lambda::Version"))
    return [f"{name} is a new version of equal code" for name in sorted(changed)]


def shift(release, gradual):
    """Returns the aliases that move at once in a gradual release, or gradually in another."""
    moves = {True: "at once", False: "gradually"}
    return [f"{name} moves {moves[gradual]} with Gradual={str(gradual).lower()}"
            for name in kinds(release, "Lambda::Alias")
            if (SHIFT in release[name].get("UpdatePolicy", {})) != gradual]
