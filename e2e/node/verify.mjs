// Verifies one notification with the official Standard Webhooks library: {"secret", "headers", "body"} on the standard
// input, exit status 0 where the signature holds.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
try {
  new Webhook(secret).verify(body, lower);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
