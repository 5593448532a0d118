// Verifies one notification with the official Standard Webhooks library. The standard input is {"secret", "headers",
// "body"}. The exit status is 0 if the signature is valid.
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
