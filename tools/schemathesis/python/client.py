"""A small merchant client over the classes that openapi-python-client generates from docs/openapi.yaml.

It runs against the local run whose run.json is in CONTRACT_RUN.
"""

import base64
import json
import os
import time

from gateway_client import AuthenticatedClient, models
from gateway_client.api.charge import charge, get_charge
from gateway_client.api.mobile_money import get_payment_status, pay
from gateway_client.api.sms import get_delivery_infos, send_sms
from gateway_client.api.token import issue_token

RUN = json.loads(os.environ["CONTRACT_RUN"])
KEY = str(time.time_ns() // 1000)
ORDER = RUN["merchant"] + "_" + KEY


def parsed(kind, response):
    """Returns the parsed body of a response, which must be of a class and have a request id."""
    assert isinstance(response.parsed, kind), (response.status_code, response.content)
    assert response.headers["x-amzn-requestid"], response.headers
    return response.parsed


def client(prefix, token):
    return AuthenticatedClient(base_url=RUN["base_url"], prefix=prefix, token=token)


# A token by client credentials.
basic = base64.b64encode((RUN["client_id"] + ":" + RUN["client_secret"]).encode()).decode()
token = parsed(models.Token, issue_token.sync_detailed(
    client=client("Basic", basic), body=models.TokenRequest(grant_type="client_credentials"),
))
api = client("Bearer", token.access_token)

# A payment by USSD, and its status.
routing = {"mno_name": models.PayMnoName.SANDBOX, "country_code": models.PayCountryCode.CI, "lang": "fr"}
purchase = models.PaymentRequest(
    currency=models.Currency.XOF, order_id=ORDER, amount="100", reference=RUN["merchant"], state="client",
    user_msisdn="+2250700002000",
    return_url="https://shop.example.com/return", cancel_url="https://shop.example.com/cancel",
)
payment = parsed(models.TerminalPayment, pay.sync_detailed(
    client=api, body=purchase, channel=models.Channel.USSD, **routing,
))
assert (payment.order_id, payment.status, payment.meta.channel) == (ORDER, "pending", "ussd"), payment
status = parsed(models.PaymentStatus, get_payment_status.sync_detailed(ORDER, client=api))
assert status.transaction_id == payment.transaction_id, status

# A payment page. Another request with the same order_id is an error, which has its own class.
purchase.order_id = ORDER + "0"
page = parsed(models.PaymentPage, pay.sync_detailed(client=api, body=purchase, channel=models.Channel.WEB, **routing))
assert page.status == 201 and page.payment_url, page
purchase.amount = "200"
taken = parsed(models.Error409, pay.sync_detailed(client=api, body=purchase, channel=models.Channel.WEB, **routing))
assert taken.request_error.service_exception.message_id == "SVC0005", taken
assert taken.request_error.service_exception.variables == [purchase.order_id, "order_id"], taken

# A charge, and its lookup.
information = models.ChargeRequestAmountTransactionPaymentAmountChargingInformation(
    amount="100", currency=models.Currency.XOF, description="A song",
)
service = models.ChargeRequestAmountTransactionPaymentAmountChargingMetaData(
    on_behalf_of=RUN["on_behalf_of"], service_id=RUN["service_id"],
)
made = parsed(models.ChargeResponse, charge.sync_detailed(
    client=api, gw_token=RUN["gw_token"], gw_alias=RUN["gw_alias"],
    body=models.ChargeRequest(models.ChargeRequestAmountTransaction(
        end_user_id="acr:OperatorAPIToken", transaction_operation_status="Charged",
        reference_code=KEY, client_correlator=KEY,
        payment_amount=models.ChargeRequestAmountTransactionPaymentAmount(
            charging_information=information, charging_meta_data=service,
        ),
    )),
)).amount_transaction
lookup = get_charge.sync_detailed(str(made.server_reference_code), client=api)
found = parsed(models.ChargeLookup, lookup).amount_transaction
assert found.payment_amount.total_amount_charged == made.payment_amount.total_amount_charged == "100", found

# An SMS, and its delivery.
message = models.SmsRequestOutboundSMSMessageRequest(
    address=["acr:X-Operator-ISE2"], sender_address="tel:+2250000", sender_name="DEMO", client_correlator=KEY,
    outbound_sms_text_message=models.SmsRequestOutboundSMSMessageRequestOutboundSMSTextMessage(message="Bonjour"),
)
sent = parsed(models.SmsResponse, send_sms.sync_detailed(
    "tel:+2250000", client=api, x_oapi_application_id=RUN["application_id"], x_oapi_contact_id=RUN["contact_id"],
    x_oapi_resource_type=models.SendSmsXOAPIResourceType.SMS_OSM, x_operator_mco=models.MCO.OCI,
    gw_alias=RUN["gw_alias"], gw_token=RUN["gw_token"],
    body=models.SmsRequest(message),
)).outbound_sms_message_request
delivery = parsed(models.DeliveryInfoList, get_delivery_infos.sync_detailed(
    "tel:+2250000", sent.resource_url.split("/")[-2], client=api,
))
assert delivery.delivery_info_list.delivery_info[0].delivery_status in list(models.DeliveryStatus), delivery
