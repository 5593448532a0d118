// requestFor builds the one request of an order: its key, path, headers and body, without the token. A retry sends
// these bytes again. The order's number is part of the key, so that an order never has a second one.
export function requestFor(settings, address, order, payer) {
  const build = { charge, ussd: payment, web: payment, sms }[order.kind];
  if (!build || !/^[0-9]{1,12}$/.test(order.amount ?? "0") || !/^\+?[0-9]{6,20}$/.test(payer)) {
    throw new Error("an order has a kind (charge, ussd, web, sms), an amount and a payer");
  }
  const { key, path, headers, body } = build(settings, address, order, payer);
  return { key, method: "POST", path, headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body) };
}

function charge(settings, address, { number, amount }, payer) {
  const key = `charge-${number}`;
  return {
    key, path: "/payment/v1/acr%3AOperatorAPIToken/transactions/amount",
    headers: { "gw-token": settings.gw_token, "gw-alias": payer },
    body: { amountTransaction: {
      endUserId: "acr:OperatorAPIToken",
      paymentAmount: {
        chargingInformation: { amount, currency: "XOF", description: "A song" },
        chargingMetaData: { onBehalfOf: settings.on_behalf_of, serviceId: settings.service_id } },
      transactionOperationStatus: "Charged",
      referenceCode: `REF-${number}`, clientCorrelator: key } },
  };
}

function payment(settings, address, { number, kind, amount }, payer) {
  const key = `${settings.merchant}_${number}`;
  return {
    key, path: "/mobilemoney/v1",
    headers: { "mno-name": "orange", "country-code": "CI", channel: kind, lang: "fr" },
    body: {
      order_id: key, amount, currency: "XOF", reference: settings.merchant, state: `order ${number}`,
      user_msisdn: payer, notif_url: `${address}/webhook`,
      return_url: `${address}/orders/${number}`, cancel_url: `${address}/orders/${number}` },
  };
}

function sms(settings, address, { number }, payer) {
  const key = `sms-${number}`;
  return {
    key, path: "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests",
    headers: {
      "gw-token": settings.gw_token, "gw-alias": payer, "X-Operator-MCO": "OCI", "X-Operator-ISE2": payer,
      "X-OAPI-Application-Id": settings.application_id, "X-OAPI-Contact-Id": settings.contact_id,
      "X-OAPI-Resource-Type": "SMS_OSM" },
    body: { outboundSMSMessageRequest: {
      address: ["acr:X-Operator-ISE2"], senderAddress: "tel:+2250000",
      outboundSMSTextMessage: { message: "Your%20parcel%20is%20here" },
      senderName: settings.on_behalf_of, clientCorrelator: key,
      receiptRequest: { notifyURL: `${address}/webhook`, callbackData: number } } },
  };
}
