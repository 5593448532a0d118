// A small shop: it sells by a charge or a payment, sends SMS, and receives notifications. docs/samples explains it.
//   PORT=8080 SHOP_DATA=shop-data node shop.mjs SETTINGS.json
// The rule that matters: each order has one key, stored before the first request. Every retry has the same key and
// body.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { verify } from "../../verify/javascript/verify.mjs";
import { requestFor } from "./requests.mjs";

const settings = JSON.parse(readFileSync(process.argv[2] ?? ".local/run.json"));
const port = Number(process.env.PORT ?? 8080), folder = process.env.SHOP_DATA ?? "shop-data";
const address = process.env.SHOP_URL ?? `http://127.0.0.1:${port}`;
const giveUpAfter = 23 * 3600 * 1000; // later the operator may have forgotten the key
const refundText = "The gateway has no refunds. Refund the customer yourself, and note it with the order.";

// Texts for the customer, by the label of the order. The labels of finalLabels never change again.
const customerTexts = {
  "checking": "We are checking with your operator. Do not pay again.",
  "confirm": "Confirm the payment on your phone.",
  "page": "Continue on the payment page.",
  "paid": "Paid. Thank you.",
  "refused": "You or your operator refused. Nothing was taken.",
  "no credit": "You do not have enough credit. Nothing was taken.",
  "not paid": "The payment failed. Nothing was taken.",
  "unavailable": "Your operator is not available. Nothing was taken. Please order again later.",
  "sent": "The message was sent.",
  "delivered": "The message was delivered.",
  "not delivered": "The message could not be delivered.",
  "problem": "Something is wrong with this order. We are looking at it. Do not pay again.",
};
const finalLabels = ["paid", "refused", "no credit", "not paid", "unavailable", "delivered", "not delivered"];

const file = (number) => `${folder}/${number}.json`;
const isFinal = (order) => finalLabels.includes(order.label);

function load(number) {
  try {
    return JSON.parse(readFileSync(file(number)));
  } catch (fault) {
    if (fault.code === "ENOENT") return undefined;
    throw fault;
  }
}

// store replaces the file in one step: a killed shop leaves the old order or the new one, never half of one.
function store(order) {
  writeFileSync(`${file(order.number)}.new`, JSON.stringify(order), { flush: true });
  renameSync(`${file(order.number)}.new`, file(order.number));
}

// update changes an order as it is stored now, because a notification may have changed it during a request.
function update(number, change) {
  const order = load(number);
  change(order);
  store(order);
  return order;
}

function label(order, value) {
  if (!isFinal(order)) order.label = value;
}

// create stores the order with its one key before anything is sent. The same number again is the same order.
function create(number, { kind, amount, payer }) {
  const known = load(number);
  if (known) return known;
  const order = { number, kind, amount, label: "checking", created: Date.now(), next: 0, tries: 0, seen: [] };
  order.request = requestFor(settings, address, order, payer);
  store(order);
  return order;
}

// advance does the next step of an order that is due: it sends the stored request, or looks a payment up.
async function advance(number) {
  const now = Date.now();
  let order = load(number);
  if (isFinal(order) || order.label === "sent" || order.next > now) return order;
  if (!order.accepted && now > order.created + giveUpAfter) {
    return update(number, (order) => label(order, "problem")); // a person must contact the operator
  }
  // No second request is sent meanwhile. After a crash, 35 seconds are longer than the lost request can live.
  order = update(number, (order) => { order.next = now + 35_000; order.tries++; });
  const lookup = { method: "GET", path: `/mobilemoney/v1/getStatus/${order.request.key}`, headers: {} };
  const response = await send(order.accepted ? lookup : order.request);
  return update(number, (order) => {
    const seconds = response?.retryAfter || Math.min(60, 2 ** order.tries);
    order.next = Date.now() + seconds * 1000;
    if (order.accepted) readStatus(order, response);
    else readResponse(order, response);
  });
}

// send returns undefined without a response: then the request may have had its effect.
async function send({ method, path, headers, body }) {
  try {
    const response = await fetch(settings.base_url + path, {
      method, body, signal: AbortSignal.timeout(30_000), redirect: "manual",
      headers: { ...headers, Authorization: `Bearer ${settings.access_token}` },
    });
    const text = await response.text();
    const json = text.startsWith("{") ? JSON.parse(text) : {};
    return { status: response.status, json, retryAfter: Number(response.headers.get("Retry-After") ?? 0) };
  } catch {
    return undefined;
  }
}

// readResponse applies the table "What may I retry?" of docs/merchants.md. No case takes a new key.
function readResponse(order, response) {
  const exception = response?.json.requestError?.serviceException ?? response?.json.requestError?.policyException;
  const id = exception?.messageId ?? "", reason = exception?.variables?.[0];
  if (!response || response.status === 500 || response.status === 504) {
    order.maybeApplied = true;
    label(order, "checking");
  } else if (response.status === 201) {
    readCreated(order, response.json);
  } else if (response.status === 429 || (response.status === 409 && response.retryAfter)) {
    label(order, "checking");
  } else if (response.status === 502 || response.status === 503) {
    // This request had no effect. An earlier one without a response may have had one: then the shop never gives up.
    label(order, order.tries >= 3 && !order.maybeApplied ? "unavailable" : "checking");
  } else if (response.status === 409 && order.kind === "sms") {
    label(order, "sent");
  } else if (response.status === 409 && order.kind !== "charge") {
    order.accepted = true; // its amount and currency show if the key is this order's
  } else if (id === "POL1000" || reason === "Not enough credit") {
    label(order, "no credit");
  } else if ((id.startsWith("POL") && reason !== "Daily amount limit exceeded") || id === "SVC0270") {
    label(order, "refused");
  } else {
    label(order, "problem"); // a person must correct something; then the same request works
    order.next = Date.now() + 60_000;
  }
}

// readCreated checks that the 201 is of this order, because a key that was used before returns its first response.
function readCreated(order, body) {
  const sent = JSON.parse(order.request.body);
  if (order.kind === "sms") return label(order, "sent");
  if (order.kind === "charge") {
    const { referenceCode, paymentAmount } = body.amountTransaction;
    // A notification may have only the amount of the request.
    const charged = paymentAmount.totalAmountCharged ?? paymentAmount.chargingInformation.amount;
    const same = referenceCode === sent.amountTransaction.referenceCode && charged === order.amount;
    return label(order, same ? "paid" : "problem");
  }
  order.accepted = true;
  order.notifToken = body.notif_token;
  order.paymentURL = body.payment_url;
  label(order, body.payment_url ? "page" : "confirm");
  order.next = Date.now() + 5000; // the notification is faster; the lookup is for the case that it is lost
}

// readStatus reads getStatus. A 404 proves nothing: the same request is sent again.
function readStatus(order, response) {
  if (response?.status === 200) readPaymentStatus(order, response.json);
  else if (response?.status === 404) Object.assign(order, { accepted: false, maybeApplied: true });
}

function readPaymentStatus(order, body) {
  const sent = JSON.parse(order.request.body);
  if (body.amount !== sent.amount || body.currency !== sent.currency) return label(order, "problem");
  if (body.status === "successful") label(order, "paid");
  else if (body.status !== "pending") label(order, "not paid"); // failed, cancelled or expired
}

// notified verifies a notification and applies it once. It returns the HTTP status of the response.
function notified(headers, raw) {
  const id = headers["webhook-id"];
  try {
    verify(settings.webhook_secret, id, headers["webhook-timestamp"], headers["webhook-signature"], raw);
  } catch {
    return 400;
  }
  const body = JSON.parse(raw), receipt = body.deliveryInfoNotification, charge = body.amountTransaction;
  const key = charge?.clientCorrelator ?? body["order-id"]; // a refused charge has its key beside requestError
  const number = receipt ? receipt.callbackData : key?.split(/[-_]/)[1];
  if (!/^[0-9]{1,19}$/.test(number ?? "") || !load(number)) return 200; // not of this shop: a retry would not help
  update(number, (order) => {
    if (order.seen.includes(id)) return; // the same notification may come twice
    order.seen.push(id);
    if (receipt) return readReceipt(order, receipt.deliveryInfo.deliveryStatus);
    if (charge) return body.requestError ? readResponse(order, { json: body, status: 403 }) : readCreated(order, body);
    if (order.notifToken && body.notif_token !== order.notifToken) return label(order, "problem");
    readPaymentStatus(order, body);
  });
  return 200;
}

function readReceipt(order, status) {
  if (status === "DeliveredToTerminal") label(order, "delivered");
  else if (status === "DeliveryImpossible") label(order, "not delivered");
  else label(order, "sent");
}

function view({ number, kind, label, request, paymentURL, seen }) {
  const customer = customerTexts[label], notifications = seen.length;
  return { number, kind, label, customer, key: request.key, payment_url: paymentURL, notifications };
}

// orders returns the numbers of all orders.
const orders = () => readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -5));

async function route(request, raw) {
  const [, what, number, act] = request.url.split("/");
  const call = `${request.method} ${what}`;
  if (call === "POST webhook") return [notified(request.headers, raw), {}];
  if (call === "POST work") return [200, (await Promise.all(orders().map(advance))).map(view)];
  if (what !== "orders" || !/^[0-9]{1,19}$/.test(number ?? "")) return [404, { error: "no such page" }];
  if (call === "PUT orders") {
    create(number, JSON.parse(raw));
    return [200, view(await advance(number))];
  }
  if (!load(number)) return [404, { error: "no such order" }];
  if (act === "refund") return [501, { error: refundText }];
  return [200, view(load(number))];
}

mkdirSync(folder, { recursive: true });
createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const [status, body] = await route(request, Buffer.concat(chunks)).catch((fault) => [500, { error: fault.message }]);
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}).listen(port, "127.0.0.1", () => console.log(`the shop is at ${address}`));
