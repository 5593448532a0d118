// Judges one notification: the secret in WEBHOOK_SECRET, webhook-id, webhook-timestamp and webhook-signature as arguments, the
// raw body on the standard input. A merchant's server takes over the function verify; it needs nothing but Node.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

// verify throws unless a notification is genuine. body is the raw body (a Buffer, or text as it came), never JSON that was parsed and
// written again; signatures is the whole header, which holds two during a rotation.
export function verify(secret, id, timestamp, signatures, body, now = Date.now()) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (key.length === 0) throw new Error("the secret is not one: whsec_ and base64");
  if (!/^[0-9]{1,15}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > 300) throw new Error("the timestamp is not within 5 minutes");
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
  const genuine = signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === want.length && timingSafeEqual(given, want);
  });
  if (!genuine) throw new Error("no signature matches");
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    if (process.argv.length !== 5 || process.env.WEBHOOK_SECRET === undefined) throw new Error("WEBHOOK_SECRET=whsec_... verify.mjs ID TIMESTAMP SIGNATURE < BODY");
    const [id, timestamp, signatures] = process.argv.slice(2);
    verify(process.env.WEBHOOK_SECRET, id, timestamp, signatures, readFileSync(0));
    console.log("verified");
  } catch (fault) {
    console.error(fault.message);
    process.exitCode = 1;
  }
}
