// A small merchant client over the types that openapi-typescript generates from docs/openapi.yaml. It compiles only if
// the types are as a merchant expects them. It runs against the local run whose run.json is in CONTRACT_RUN.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string> };

const run = JSON.parse(process.env.CONTRACT_RUN);
const api = createClient<paths>({ baseUrl: run.base_url });

function must<T>(value: T | undefined, what: string, error: unknown): T {
  if (value === undefined) throw new Error(`${what}: ${JSON.stringify(error)}`);
  return value;
}

// A token by client credentials.
const token = await api.POST("/token", {
  headers: {
    Authorization: "Basic " + btoa(`${run.client_id}:${run.client_secret}`),
    "Content-Type": "application/x-www-form-urlencoded",
  },
  body: { grant_type: "client_credentials" },
  bodySerializer: (body) => new URLSearchParams(body as Record<string, string>),
});
const Authorization = "Bearer " + must(token.data, "token", token.error).access_token;

// A payment by USSD, and its status.
const order_id = `${run.merchant}_${Date.now()}`;
const routing = { "mno-name": "sandbox", "country-code": "CI", channel: "ussd", lang: "fr" } as const;
const payment = await api.POST("/mobilemoney/v1", {
  params: { header: routing },
  headers: { Authorization },
  body: {
    currency: "XOF", order_id, amount: "100", reference: run.merchant, state: "client", user_msisdn: "+2250700002000",
    return_url: "https://shop.example.com/return", cancel_url: "https://shop.example.com/cancel",
  },
});
type Schemas = components["schemas"];
const pending: Schemas["PaymentPage"] | Schemas["TerminalPayment"] = must(payment.data, "pay", payment.error);
const lookup = await api.GET("/mobilemoney/v1/getStatus/{orderId}", {
  params: { path: { orderId: order_id } },
  headers: { Authorization },
});
type Status = "pending" | "successful" | "failed" | "cancelled" | "expired";
const status: Status = must(lookup.data, "getStatus", lookup.error).status;

// A charge. Its error has a type too.
const charge = await api.POST("/payment/v1/acr%3AOperatorAPIToken/transactions/amount", {
  params: { header: { "gw-token": run.gw_token, "gw-alias": run.gw_alias } },
  headers: { Authorization },
  body: {
    amountTransaction: {
      endUserId: "acr:OperatorAPIToken",
      paymentAmount: {
        chargingInformation: { amount: "100", currency: "XOF", description: "A song" },
        chargingMetaData: { onBehalfOf: run.on_behalf_of, serviceId: run.service_id },
      },
      transactionOperationStatus: "Charged", referenceCode: order_id, clientCorrelator: order_id,
    },
  },
});
const reference: string = must(charge.data, "charge", charge.error).amountTransaction.serverReferenceCode;

// Requests with missing or wrong parts do not compile.
const anyBody = {} as Schemas["PaymentRequest"];
export const wrong = () => [
  // @ts-expect-error: a payment without its routing headers
  api.POST("/mobilemoney/v1", { body: anyBody }),
  // @ts-expect-error: no such channel
  api.POST("/mobilemoney/v1", { params: { header: { ...routing, channel: "fax" } }, body: anyBody }),
  // @ts-expect-error: no such path
  api.GET("/mobilemoney/v2"),
];

// The body of a notification, as a merchant's server receives it.
export type Notification = Schemas["PaymentNotification"];
export const paid = (body: Notification): boolean => body.status === "successful" && body["order-id"] === order_id;

if (!pending || !status || !reference) throw new Error("a response is empty");
