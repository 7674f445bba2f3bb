// Verifies a webhook with what Node brings along, as a receiver without our library would.
// Reads {"secret", "headers", "body"} from standard input; says whether it is genuine.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
const expected = createHmac("sha256", key).update(signed, "utf8").digest();
const age = Math.abs(Date.now() / 1000 - Number(headers["webhook-timestamp"]));
const genuine = headers["webhook-signature"].split(" ").some((one) => {
  const [version, text] = one.split(",", 2);
  const given = Buffer.from(text ?? "", "base64");
  return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
});
process.stdout.write(genuine && age < 300 ? "genuine" : "forged");
