"""What the contract says and OpenAPI cannot: the rules of its extensions, applied to each case that is meant to be valid.

A case that is meant to be invalid goes out as it is. Lookups and callbacks, whose paths carry what only the gateway can
give, get the paths of one payment and one message that were made for them.
"""

import functools
import itertools
import json
import os
import re
import time
import urllib.parse
import uuid

import requests
import schemathesis
from schemathesis.core.parameters import ParameterLocation

RUN = json.loads(os.environ["CONTRACT_RUN"])  # the local run, as its run.json tells of it

PAYER = "+2250700002000"  # for the payment that is made for lookups and callbacks
HOME = "OCI"  # the country of the run's first merchant


def header(case, name):
    return next((value for key, value in (case.headers or {}).items() if key.lower() == name.lower()), None)


def chosen(schema, case):
    """The schema that stands under the value of the header that x-by-header names."""
    by = schema.get("x-by-header")
    if not by:
        return {}
    value = header(case, by["name"])
    if value is None and "absent" in by:
        value = HOME
    return next((found for name, found in by["schemas"].items() if name.lower() == str(value).lower()), {})


def fit(schema, value, case):
    """Gives a value, valid by itself, what the headers and the path ask of it besides."""
    rule = chosen(schema, case)
    if "x-equals-path" in schema and isinstance(value, str):
        return case.path_parameters[schema["x-equals-path"]]
    if "const" in rule:
        return rule["const"]
    if "multipleOf" in json.dumps(rule):
        return "1" if isinstance(value, str) else 1
    if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
        return number(rule["pattern"])
    if isinstance(value, dict):
        if "else" in schema:  # a payment's report, at the root or in its payload
            schema = schema["then"] if value.get("payload") is not None else schema["else"]
        for name in schema.get("properties", {}).keys() & value.keys():
            value[name] = fit(schema["properties"][name], value[name], case)
        for name in rule.get("required", []):
            value[name] = value.get(name) or number(chosen(schema["properties"][name], case).get("pattern", ""))
    return value


@functools.cache
def number(pattern):
    """A number of the plan that a pattern describes: the calling code that it names, and the first national number that it takes."""
    code = re.search(r"00\)\??([0-9]+)", pattern)
    if not code:
        return None
    candidates = (f"+{code[1]}{head:02}{'2000'.rjust(length - 2, '0')}" for length in range(6, 13) for head in (70, 7))
    return next(candidate for candidate in candidates if re.search(pattern, candidate))


SERIAL = itertools.count(10_000_000)


def fresh(value):
    """A key that nothing has been done under yet, as long as the given one; each fifth stays, for repeats."""
    serial = next(SERIAL)
    if not isinstance(value, str) or serial % 5 == 0:
        return value
    return value[:-8] + str(serial)


def fresh_keys(name, body):
    if name == "pay":
        body["order_id"] = RUN["merchant"] + "_" + fresh(body["order_id"].split("_")[1].rjust(8, "0"))
    for root, keys in (("amountTransaction", ("referenceCode", "clientCorrelator")), ("outboundSMSMessageRequest", ("clientCorrelator",))):
        for key in keys:
            if key in body.get(root, {}):
                body[root][key] = fresh(body[root][key])


def text_fits(value):
    """x-max-bytes, for the one field that has it."""
    return value.encode()[:1024].decode(errors="ignore") if isinstance(value, str) else value


@functools.cache
def genuine():
    """The paths of a payment and of a message: what the operator was told to call, and what the merchant looks up."""
    key = str(uuid.uuid4().int)[:12]
    bearer = {"Authorization": "Bearer " + RUN["access_token"]}
    order = RUN["merchant"] + "_" + key
    base, sender = RUN["base_url"], "tel:+2250000"
    requests.post(base + "/mobilemoney/v1", timeout=30, headers=bearer | {
        "mno-name": "sandbox", "country-code": "CI", "channel": "ussd", "lang": "fr",
    }, json={
        "currency": "XOF", "order_id": order, "amount": "100", "return_url": "https://shop.example.com/", "cancel_url": "https://shop.example.com/",
        "reference": "contract", "user_msisdn": PAYER, "state": "contract",
    }).raise_for_status()
    message = requests.post(base + "/smsmessaging/v1/outbound/" + urllib.parse.quote(sender, safe="") + "/requests", timeout=30, headers=bearer | {
        "X-OAPI-Application-Id": RUN["application_id"], "X-OAPI-Contact-Id": RUN["contact_id"], "X-OAPI-Resource-Type": "SMS_OSM",
        "gw-alias": RUN["gw_alias"], "gw-token": RUN["gw_token"], "X-Operator-MCO": HOME,
    }, json={"outboundSMSMessageRequest": {
        "address": ["acr:X-Operator-ISE2"], "senderAddress": sender, "outboundSMSTextMessage": {"message": "contract"},
        "senderName": "Demo", "clientCorrelator": key,
    }})
    message.raise_for_status()
    payment, receipt = called(order), called(key)
    return {
        "reportPayment": dict(zip(("operator", "orderId", "token"), payment)),
        "reportDelivery": dict(zip(("operator", "requestId", "token"), receipt)),
        "getDeliveryInfos": {"senderAddress": sender, "requestId": message.headers["Location"].split("/")[-2]},
    }


def called(key):
    """The last three segments of the address that the sandbox calls back about a key."""
    for _ in range(100):
        for effect in requests.get(RUN["sandbox_url"] + "/sandbox/v1/effects", params={"key": key}, timeout=30).json():
            if effect.get("callback_url"):
                return [urllib.parse.unquote(segment) for segment in effect["callback_url"].split("/")[-3:]]
        time.sleep(0.1)
    raise RuntimeError("the sandbox knows of no callback address of " + key)


def operation_id(case):
    return case.operation.definition.raw.get("operationId")


def json_schema(case):
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema", {})


def of_the_country(case):
    """Puts the prefix of the recipient's country into the path's sender address."""
    sender = json_schema(case)["properties"]["outboundSMSMessageRequest"]["properties"]["senderAddress"]
    rule = chosen(sender, case).get("pattern", "")
    if rule and not re.search(rule, case.path_parameters["senderAddress"]):
        case.path_parameters["senderAddress"] = rule.removeprefix("^").replace("\\", "").replace("[0-9]", "0000")


def authenticated_once(case):
    """The client stands in the header, so neither it nor anything of it in the form; the grant in one place at least."""
    if isinstance(case.body, dict):
        for name in ("client_id", "client_secret"):
            case.body.pop(name, None)
        case.body.setdefault("grant_type", "client_credentials")
    else:
        case.query = {"grant_type": "client_credentials"}


@schemathesis.hook
def before_call(context, case, kwargs):
    name = operation_id(case)
    if case.meta is None:
        return
    if name in ("reportPayment", "reportDelivery", "getDeliveryInfos") and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters = dict(genuine()[name])
    if not case.meta.generation.mode.is_positive:
        return
    if name == "issueToken":
        authenticated_once(case)
        return
    if name == "sendSms":
        of_the_country(case)
    if isinstance(case.body, dict):
        case.body = fit(json_schema(case), case.body, case)
        fresh_keys(name, case.body)
        if "state" in case.body:
            case.body["state"] = text_fits(case.body["state"])


@schemathesis.check
def wrong_method_is_no_route(ctx, response, case):
    """A method that a path does not have is an unknown route (decision "order-of-refusals")."""
    declared = {method.upper() for method in case.operation.schema[case.operation.path]}
    if response.request.method not in declared and response.request.method != "HEAD":
        assert response.status_code == 404, response.status_code
        assert "900906" in response.text, response.text
