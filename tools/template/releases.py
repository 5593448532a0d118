"""Checks what SAM makes of two releases of one template, which cfn-lint and checkov do not see."""
import logging
import os
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

GRADUAL = ".local/template/gradual/template.yaml"
POLICY = {"SecurityPolicy", "EndpointAccessMode"}  # of an API: without it, API Gateway accepts TLS 1.0


def check(files):
    """Returns what is wrong with two releases of template.yaml. Its gradual variant must be among the files."""
    if GRADUAL not in files:
        return ["template.yaml has no gradual variant: it needs lines that begin with #gradual"]
    logging.disable()  # the transform reports its own features
    os.environ["AWS_DEFAULT_REGION"] = "eu-west-1"
    found = compare(resources(GRADUAL, "2611211230"), resources(GRADUAL, "2611211231"))
    return [f"{GRADUAL}: {finding}" for finding in found]


def resources(file, release):
    """Returns the resources that SAM makes of a template for one value of Release. The code is not built."""
    template = yaml_parse(Path(file).read_text())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    policies = type("NoPolicies", (), {"load": lambda self: {}})()
    return transform(template, {"Release": release, "AWS::Region": "eu-west-1"}, policies)["Resources"]


def compare(first, second):
    """Returns what is wrong with two releases. Lambda publishes a version only of a function that has changed."""
    kinds = {name: resource["Type"].removeprefix("AWS::") for name, resource in first.items()}
    found = [] if "Lambda::Function" in kinds.values() else ["there is no function"]
    for name, kind in kinds.items():
        versions = [n for n in kinds if kinds[n] == "Lambda::Version" and n.startswith(name + "Version")]
        if kind == "Lambda::Function" and first[name] == second.get(name):
            found.append(f"{name} is the same in two releases: Lambda publishes no version of it")
        if kind == "Lambda::Function" and not versions:
            found.append(f"{name} has no version")
        if kind == "Lambda::Version" and name in second:
            found.append(f"{name} is one version for two releases")
        if kind == "ApiGateway::RestApi" and not POLICY <= first[name]["Properties"].keys():
            found.append(f"{name} loses its security policy: API Gateway would accept TLS 1.0")
    return found
