// Verifies one notification. WEBHOOK_SECRET is the secret. The arguments are webhook-id, webhook-timestamp and
// webhook-signature, the standard input is the raw body. Copy the function verify into your server; it needs only Node.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

// verify throws if a notification is not authentic. body is the raw body, a Buffer or the unchanged text. It is never
// JSON that was parsed and written again. signatures is the whole header webhook-signature, which contains two
// signatures during a rotation. An absent header is undefined or "".
export function verify(secret, id, timestamp, signatures, body, now = Date.now()) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (key.length === 0) throw new Error("the secret is not whsec_ and base64");
  if (!/^[!-~]{1,256}$/.test(id ?? "") || !/^[0-9]{1,15}$/.test(timestamp ?? "") || !signatures) {
    throw new Error("a header is missing or malformed");
  }
  if (Math.abs(now / 1000 - Number(timestamp)) > 300) throw new Error("the timestamp is not within 5 minutes");
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const want = Buffer.from("v1," + digest);
  const authentic = signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === want.length && timingSafeEqual(given, want);
  });
  if (!authentic) throw new Error("no signature matches");
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    if (process.argv.length !== 5 || process.env.WEBHOOK_SECRET === undefined) {
      throw new Error("WEBHOOK_SECRET=whsec_... verify.mjs ID TIMESTAMP SIGNATURE < BODY");
    }
    const [id, timestamp, signatures] = process.argv.slice(2);
    verify(process.env.WEBHOOK_SECRET, id, timestamp, signatures, readFileSync(0));
    console.log("verified");
  } catch (fault) {
    console.error(fault.message);
    process.exitCode = 1;
  }
}
