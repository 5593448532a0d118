import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.ApiResponse;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

import java.net.URI;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** A small merchant client over the classes that openapi-generator generates from docs/openapi.yaml. */
public class Client {
  static final Map<String, Object> RUN = new com.google.gson.Gson().fromJson(System.getenv("CONTRACT_RUN"), Map.class);

  static String run(String name) { return (String) RUN.get(name); }

  static void must(boolean condition, Object what) {
    if (!condition) throw new AssertionError(String.valueOf(what));
  }

  static <T> T data(ApiResponse<T> response) {
    must(response.getHeaders().keySet().stream().anyMatch("x-amzn-requestid"::equalsIgnoreCase), response.getHeaders());
    return response.getData();
  }

  static Amount amount(String text) { Amount amount = new Amount(); amount.setActualInstance(text); return amount; }

  public static void main(String[] none) throws Exception {
    String key = "" + System.nanoTime() / 1000, order = run("merchant") + "_" + key;
    ApiClient client = new ApiClient().setBasePath(run("base_url"));

    // A token by client credentials.
    client.setUsername(run("client_id"));
    client.setPassword(run("client_secret"));
    TokenApi tokens = new TokenApi(client);
    client.setBearerToken(data(tokens.issueTokenWithHttpInfo(null, "client_credentials", null, null)).getAccessToken());

    // A payment by USSD, and its status. Another request with the same order_id is an error.
    MobileMoneyApi money = new MobileMoneyApi(client);
    PaymentRequest purchase = new PaymentRequest().currency(Currency.XOF).orderId(order).amount(amount("100"))
        .reference(run("merchant")).state("client").userMsisdn("+2250700002000")
        .returnUrl(URI.create("https://shop.example.com/return"))
        .cancelUrl(URI.create("https://shop.example.com/cancel"));
    TerminalPayment payment = data(money.payWithHttpInfo("sandbox", "CI", Channel.USSD, "fr", purchase))
        .getTerminalPayment();
    must(payment.getMeta().getSource() == Source.SANDBOX && payment.getOrderId().equals(order), payment);
    PaymentStatus status = data(money.getPaymentStatusWithHttpInfo(order));
    must(status.getTransactionId().equals(payment.getTransactionId()), status);
    try {
      money.pay("sandbox", "CI", Channel.USSD, "fr", purchase.amount(amount("200")));
      must(false, "a second payment");
    } catch (ApiException refused) {
      Error409 error = Error409.fromJson(refused.getResponseBody());
      must(refused.getCode() == 409, refused);
      must(error.getRequestError().getServiceException().getVariables().contains(order), refused);
    }
    purchase.orderId(order + "0");
    PaymentPage page = data(money.payWithHttpInfo("sandbox", "CI", Channel.WEB, "fr", purchase)).getPaymentPage();
    must(page.getPaymentUrl() != null, page);

    // A charge, and its lookup.
    ChargeApi charges = new ChargeApi(client);
    var information = new ChargeRequestAmountTransactionPaymentAmountChargingInformation()
        .amount(amount("100")).currency(Currency.XOF).description("A song");
    var service = new ChargeRequestAmountTransactionPaymentAmountChargingMetaData()
        .onBehalfOf(run("on_behalf_of")).serviceId(run("service_id"));
    ChargeRequest request = new ChargeRequest().amountTransaction(new ChargeRequestAmountTransaction()
        .endUserId(ChargeRequestAmountTransaction.EndUserIdEnum.ACR_OPERATOR_API_TOKEN)
        .referenceCode(key).clientCorrelator(key)
        .transactionOperationStatus(ChargeRequestAmountTransaction.TransactionOperationStatusEnum.CHARGED)
        .paymentAmount(new ChargeRequestAmountTransactionPaymentAmount()
            .chargingInformation(information).chargingMetaData(service)));
    ChargeResponseAmountTransaction made =
        data(charges.chargeWithHttpInfo(run("gw_token"), run("gw_alias"), request, null)).getAmountTransaction();
    ChargeLookupAmountTransaction found =
        data(charges.getChargeWithHttpInfo(made.getServerReferenceCode().toString())).getAmountTransaction();
    must(found.getPaymentAmount().getTotalAmountCharged().getString().equals("100"), found);

    // An SMS, and its delivery.
    SmsApi messages = new SmsApi(client);
    SmsRequest text = new SmsRequest().outboundSMSMessageRequest(new SmsRequestOutboundSMSMessageRequest()
        .addAddressItem(Recipient.ACR_X_OPERATOR_ISE2)
        .senderAddress("tel:+2250000").senderName("DEMO").clientCorrelator(key)
        .outboundSMSTextMessage(new SmsRequestOutboundSMSMessageRequestOutboundSMSTextMessage().message("Bonjour")));
    SmsResponse sent = data(messages.sendSmsWithHttpInfo("tel:+2250000", run("application_id"), run("contact_id"),
        "SMS_OSM", run("gw_alias"), run("gw_token"), MCO.OCI, text, null));
    String[] resource = sent.getOutboundSMSMessageRequest().getResourceURL().getPath().split("/");
    DeliveryInfoList delivery =
        data(messages.getDeliveryInfosWithHttpInfo("tel:+2250000", resource[resource.length - 2]));
    must(delivery.getDeliveryInfoList().getDeliveryInfo().get(0).getDeliveryStatus() != null, delivery);
  }
}
