"""Applies the rules of the contract's extensions, which OpenAPI cannot state, to each valid case.

Invalid cases are sent unchanged. Lookups, callbacks and resends get the paths of one payment and one message, because
only the gateway can create valid paths for them.
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

RUN = json.loads(os.environ["CONTRACT_RUN"])  # the run.json of the local run

PAYER = "+2250700002000"  # of the payment for lookups and callbacks
HOME = "OCI"  # the country of the run's first merchant


def header(case, name):
    return next((value for key, value in (case.headers or {}).items() if key.lower() == name.lower()), None)


def schema_by_header(schema, case):
    """Returns the schema that x-by-header has for the value of its header, or {}."""
    by = schema.get("x-by-header")
    if not by:
        return {}
    value = header(case, by["name"])
    if value is None and "absent" in by:
        value = HOME
    return next((found for name, found in by["schemas"].items() if name.lower() == str(value).lower()), {})


def fit(schema, value, case):
    """Returns the value, changed to follow the rules that depend on headers and on the path."""
    rule = schema_by_header(schema, case)
    if "x-equals-path" in schema and isinstance(value, str):
        return case.path_parameters[schema["x-equals-path"]]
    if "const" in rule:
        return rule["const"]
    if "multipleOf" in json.dumps(rule):
        return "1" if isinstance(value, str) else 1
    if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
        return number(rule["pattern"])
    if isinstance(value, dict):
        if "else" in schema:  # a payment callback, with its fields at the root or in payload
            schema = schema["then"] if value.get("payload") is not None else schema["else"]
        for name in schema.get("properties", {}).keys() & value.keys():
            value[name] = fit(schema["properties"][name], value[name], case)
        for name in rule.get("required", []):
            pattern = schema_by_header(schema["properties"][name], case).get("pattern", "")
            value[name] = value.get(name) or number(pattern)
    return value


@functools.cache
def number(pattern):
    """Returns a number that matches a pattern: its calling code and the first valid national number."""
    code = re.search(r"00\)\??([0-9]+)", pattern)
    if not code:
        return None
    candidates = (
        f"+{code[1]}{head:02}{'2000'.rjust(length - 2, '0')}" for length in range(6, 13) for head in (70, 7)
    )
    return next(candidate for candidate in candidates if re.search(pattern, candidate))


SERIAL = itertools.count(10_000_000)


def fresh(value):
    """Returns an unused idempotency key of the same length. Every fifth key is unchanged, which makes retries."""
    serial = next(SERIAL)
    if not isinstance(value, str) or serial % 5 == 0:
        return value
    return value[:-8] + str(serial)


def fresh_keys(name, body):
    if name == "pay":
        body["order_id"] = RUN["merchant"] + "_" + fresh(body["order_id"].split("_")[1].rjust(8, "0"))
    for root in ("amountTransaction", "outboundSMSMessageRequest"):
        for key in ("referenceCode", "clientCorrelator"):
            if key in body.get(root, {}):
                body[root][key] = fresh(body[root][key])


def text_fits(value):
    """Applies x-max-bytes, which only one field has."""
    return value.encode()[:1024].decode(errors="ignore") if isinstance(value, str) else value


@functools.cache
def valid_paths():
    """Creates a payment and a message. Returns the path parameters of their callbacks, of the SMS lookup, and of the
    resend of the payment's notification."""
    key = str(uuid.uuid4().int)[:12]
    bearer = {"Authorization": "Bearer " + RUN["access_token"]}
    order = RUN["merchant"] + "_" + key
    base, sender = RUN["base_url"], "tel:+2250000"
    requests.post(base + "/mobilemoney/v1", timeout=30, headers=bearer | {
        "mno-name": "sandbox", "country-code": "CI", "channel": "ussd", "lang": "fr",
    }, json={
        "currency": "XOF", "order_id": order, "amount": "100", "reference": "contract", "state": "contract",
        "return_url": "https://shop.example.com/", "cancel_url": "https://shop.example.com/", "user_msisdn": PAYER,
    }).raise_for_status()
    outbound = base + "/smsmessaging/v1/outbound/" + urllib.parse.quote(sender, safe="") + "/requests"
    message = requests.post(outbound, timeout=30, headers=bearer | {
        "X-OAPI-Application-Id": RUN["application_id"], "X-OAPI-Contact-Id": RUN["contact_id"],
        "X-OAPI-Resource-Type": "SMS_OSM", "X-Operator-MCO": HOME,
        "gw-alias": RUN["gw_alias"], "gw-token": RUN["gw_token"],
    }, json={"outboundSMSMessageRequest": {
        "address": ["acr:X-Operator-ISE2"], "senderAddress": sender, "outboundSMSTextMessage": {"message": "contract"},
        "senderName": "Demo", "clientCorrelator": key,
    }})
    message.raise_for_status()
    payment, receipt = callback_segments(order), callback_segments(key)
    return {
        "reportPayment": dict(zip(("operator", "orderId", "token"), payment)),
        "reportDelivery": dict(zip(("operator", "requestId", "token"), receipt)),
        "getDeliveryInfos": {"senderAddress": sender, "requestId": message.headers["Location"].split("/")[-2]},
        "resendNotification": {"webhookId": webhook_id(base, bearer, order)},
    }


def webhook_id(base, bearer, order):
    """Returns the webhook-id of the payment's notification, once the payment has one."""
    for _ in range(100):
        page = requests.get(base + "/reports/v1/transactions", params={"operation": "pay", "limit": 100}, timeout=30,
                            headers=bearer).json()
        for row in page["transactions"]:
            if row["id"] == order and row["notifications"]:
                return row["notifications"][0]["webhook_id"]
        time.sleep(0.1)
    raise RuntimeError("the payment " + order + " has no notification: look at the log of relay")


def callback_segments(key):
    """Returns the last three segments of the callback URL that the sandbox has for a key."""
    for _ in range(100):
        for effect in requests.get(RUN["sandbox_url"] + "/sandbox/v1/effects", params={"key": key}, timeout=30).json():
            if effect.get("callback_url"):
                return [urllib.parse.unquote(segment) for segment in effect["callback_url"].split("/")[-3:]]
        time.sleep(0.1)
    raise RuntimeError("the sandbox has no callback URL for " + key + ": look at its log")


def operation_id(case):
    return case.operation.definition.raw.get("operationId")


def json_schema(case):
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema", {})


def set_sender_country(case):
    """Sets the calling code of the recipient's country in the sender address of the path."""
    sender = json_schema(case)["properties"]["outboundSMSMessageRequest"]["properties"]["senderAddress"]
    rule = schema_by_header(sender, case).get("pattern", "")
    if rule and not re.search(rule, case.path_parameters["senderAddress"]):
        case.path_parameters["senderAddress"] = rule.removeprefix("^").replace("\\", "").replace("[0-9]", "0000")


def authenticate_once(case):
    """Removes the client from the form, because the header has it. Adds the grant if it is missing."""
    if isinstance(case.body, dict):
        for name in ("client_id", "client_secret"):
            case.body.pop(name, None)
        case.body.setdefault("grant_type", "client_credentials")
    else:
        case.query = {"grant_type": "client_credentials"}


def set_one_key(case):
    """Leaves one key in the query of a charge's lookup: without exactly one, the path is no route."""
    key = (case.query or {}).get("clientCorrelator")
    case.query = {"clientCorrelator": "c-1001" if key is None else key}


def drop_cursor(case):
    """Removes the cursor, which only the gateway can make."""
    if case.query:
        case.query.pop("cursor", None)


@schemathesis.hook
def before_call(context, case, kwargs):
    name = operation_id(case)
    if case.meta is None:
        return
    needs_path = name in ("reportPayment", "reportDelivery", "getDeliveryInfos", "resendNotification")
    if needs_path and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters = dict(valid_paths()[name])
    if name == "findCharge" and not case.meta.is_negative_at(ParameterLocation.QUERY):
        set_one_key(case)
    if name == "listTransactions" and not case.meta.is_negative_at(ParameterLocation.QUERY):
        drop_cursor(case)
    if not case.meta.generation.mode.is_positive:
        return
    if name == "issueToken":
        authenticate_once(case)
        return
    if name == "sendSms":
        set_sender_country(case)
    if isinstance(case.body, dict):
        case.body = fit(json_schema(case), case.body, case)
        fresh_keys(name, case.body)
        if "state" in case.body:
            case.body["state"] = text_fits(case.body["state"])


@schemathesis.check
def wrong_method_is_no_route(ctx, response, case):
    """Requires 404 for a method that a path does not have (decision "order-of-refusals")."""
    declared = {method.upper() for method in case.operation.schema[case.operation.path]}
    if response.request.method not in declared and response.request.method != "HEAD":
        assert response.status_code == 404, response.status_code
        assert "900906" in response.text, response.text
