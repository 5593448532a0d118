// Waits for the notification of an order in the local run's inbox, and judges it, and a forged copy of it, with verify.mjs:
//   node docs/verify/javascript/inbox.mjs ORDER_ID
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { verify } from "./verify.mjs";

const run = JSON.parse(readFileSync(`${process.env.LOCAL_DIR ?? ".local"}/run.json`));
const order = process.argv[2] ?? "";

async function notification() {
  for (let tries = 0; tries < 100; tries++) {
    const answer = await fetch(`${run.inbox_url}/messages?order_id=${encodeURIComponent(order)}`);
    const messages = await answer.json();
    if (messages.length > 0) return messages.at(-1);
    await wait(200);
  }
  throw new Error(`no notification of ${order} within 20 seconds`);
}

function judge(headers, body) {
  try {
    verify(run.webhook_secret, headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"], body, Date.parse(received));
    return "verified";
  } catch (fault) {
    return `refused, ${fault.message}`;
  }
}

const { headers, body, received_at: received } = await notification();
const genuine = judge(headers, body), forged = judge(headers, body.replace(/"amount":"/, '"amount":"9'));
console.log(`${body}\nwebhook-id ${headers["webhook-id"]}: ${genuine}\nthe same with another amount: ${forged}`);
process.exitCode = genuine === "verified" && forged !== "verified" ? 0 : 1;
