"""A small merchant client over the classes that openapi-generator generates from docs/openapi.yaml.

It runs against the local run whose run.json is in CONTRACT_RUN.
"""

import json
import os
import time

import openapi_client as gateway

RUN = json.loads(os.environ["CONTRACT_RUN"])
KEY = str(time.time_ns() // 1000)
ORDER = RUN["merchant"] + "_" + KEY

configuration = gateway.Configuration(host=RUN["base_url"], username=RUN["client_id"], password=RUN["client_secret"])
api = gateway.ApiClient(configuration)


def data(response):
    """Returns the data of a response, which must have a request id."""
    assert "x-amzn-requestid" in map(str.lower, response.headers), response
    return response.data


# A token by client credentials.
token = data(gateway.TokenApi(api).issue_token_with_http_info(grant_type2="client_credentials"))
configuration.access_token = token.access_token

# A payment by USSD, and its status. Another request with the same order_id is an error.
money = gateway.MobileMoneyApi(api)
purchase = gateway.PaymentRequest(
    currency="XOF", order_id=ORDER, amount=gateway.Amount("100"), reference=RUN["merchant"], state="client",
    user_msisdn="+2250700002000",
    return_url="https://shop.example.com/return", cancel_url="https://shop.example.com/cancel",
)
payment = data(money.pay_with_http_info("sandbox", "CI", "ussd", "fr", purchase)).actual_instance
assert (payment.order_id, payment.status, payment.meta.source) == (ORDER, "pending", "sandbox"), payment
status = data(money.get_payment_status_with_http_info(ORDER))
assert status.transaction_id == payment.transaction_id, status
purchase.amount = gateway.Amount("200")
try:
    money.pay("sandbox", "CI", "ussd", "fr", purchase)
    raise AssertionError("a second payment")
except gateway.ApiException as refused:
    assert refused.status == 409 and refused.data.request_error.service_exception.message_id == "SVC0005", refused

# A charge, and its lookup.
information = gateway.ChargeRequestAmountTransactionPaymentAmountChargingInformation(
    amount=gateway.Amount("100"), currency="XOF", description="A song",
)
service = gateway.ChargeRequestAmountTransactionPaymentAmountChargingMetaData(
    on_behalf_of=RUN["on_behalf_of"], service_id=RUN["service_id"],
)
transaction = gateway.ChargeRequestAmountTransaction(
    end_user_id="acr:OperatorAPIToken", transaction_operation_status="Charged",
    reference_code=KEY, client_correlator=KEY,
    payment_amount=gateway.ChargeRequestAmountTransactionPaymentAmount(
        charging_information=information, charging_meta_data=service,
    ),
)
charges = gateway.ChargeApi(api)
made = data(charges.charge_with_http_info(
    RUN["gw_token"], RUN["gw_alias"], gateway.ChargeRequest(amount_transaction=transaction),
)).amount_transaction
found = data(charges.get_charge_with_http_info(str(made.server_reference_code))).amount_transaction
assert found.payment_amount.total_amount_charged.actual_instance == "100", found

# An SMS, and its delivery.
message = gateway.SmsRequestOutboundSMSMessageRequest(
    address=["acr:X-Operator-ISE2"], sender_address="tel:+2250000", sender_name="DEMO", client_correlator=KEY,
    outbound_sms_text_message=gateway.SmsRequestOutboundSMSMessageRequestOutboundSMSTextMessage(message="Bonjour"),
)
sms = gateway.SMSApi(api)
sent = data(sms.send_sms_with_http_info(
    "tel:+2250000", RUN["application_id"], RUN["contact_id"], "SMS_OSM", RUN["gw_alias"], RUN["gw_token"], "OCI",
    gateway.SmsRequest(outbound_sms_message_request=message),
)).outbound_sms_message_request
delivery = data(sms.get_delivery_infos_with_http_info("tel:+2250000", sent.resource_url.split("/")[-2]))
assert delivery.delivery_info_list.delivery_info[0].delivery_status, delivery
