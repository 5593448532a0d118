// Waits for the notification of an order in the local run's inbox. Verifies it, and a forged copy, with verify.mjs:
//   node docs/verify/javascript/inbox.mjs ORDER_ID
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { verify } from "./verify.mjs";

const run = JSON.parse(readFileSync(`${process.env.LOCAL_DIR ?? ".local"}/run.json`));
const order = process.argv[2] ?? "";

async function notification() {
  for (let tries = 0; tries < 100; tries++) {
    const response = await fetch(`${run.inbox_url}/messages?order_id=${encodeURIComponent(order)}`);
    const messages = await response.json();
    if (messages.length > 0) return messages.at(-1);
    await wait(200);
  }
  throw new Error(`no notification of ${order} within 20 seconds`);
}

function check(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  try {
    verify(run.webhook_secret, id, timestamp, signatures, body, Date.parse(received));
    return "verified";
  } catch (fault) {
    return `refused, ${fault.message}`;
  }
}

const { headers, body, received_at: received } = await notification();
const original = check(headers, body), forged = check(headers, body.replace(/"amount":"/, '"amount":"9'));
console.log(`${body}\nwebhook-id ${headers["webhook-id"]}: ${original}\nthe same with another amount: ${forged}`);
process.exitCode = original === "verified" && forged !== "verified" ? 0 : 1;
