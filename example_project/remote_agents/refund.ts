// A remote agent in TypeScript: refunds an order once a person has approved it.
//
//     export HITL_URL=http://127.0.0.1:8000/api HITL_TOKEN=hac_... PAYMENTS_URL=http://127.0.0.1:8900
//     node refund.ts JOB ORDER AMOUNT
//
// Ends with 0: the job is over. 1: start it again, with the same words. 2: somebody has to look.
// Node 22.18 or later runs it as it is, without packages. What it must not forget is in
// $STATE_DIR/JOB, one file a fact. HONOURS_KEYS=yes says that the payment system does nothing the
// second time that an Idempotency-Key comes.
import { randomUUID } from "node:crypto";
import * as fs from "node:fs";

const [job, order, amount] = process.argv.slice(2) as [string, string, string];
const { HITL_URL, HITL_TOKEN, PAYMENTS_URL, HONOURS_KEYS, STATE_DIR = "." } = process.env;
const state = `${STATE_DIR}/${job}`;
fs.mkdirSync(state, { recursive: true });

const knows = (name: string) => fs.existsSync(`${state}/${name}`);
const recall = (name: string) => fs.readFileSync(`${state}/${name}`, "utf8");

/** The fact is there in full or not at all, outlives a crash and never changes. */
function note(name: string, text: string): void {
  const draft = `${state}/.${name}.${randomUUID()}`;
  fs.writeFileSync(draft, text, { flush: true });
  fs.linkSync(draft, `${state}/${name}`); // fails if it is there: of two processes, one goes on
  const folder = fs.openSync(state, "r");
  fs.fsyncSync(folder);
  fs.rmSync(draft);
}

/** The job is over. */
function over(text: string): never {
  if (!knows("over")) note("over", text);
  console.log(recall("over"));
  process.exit(0);
}

/** A number that JavaScript would round or write in another way stays as it came. */
const exactly = (_name: string, value: unknown, { source }: { source: string }) =>
  typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value;

/** Nobody answered: the error ends the process with 1, which is what is wanted. */
async function send(method: string, url: string, headers: Record<string, string>, body?: string) {
  const options = { method, body, redirect: "manual", signal: AbortSignal.timeout(60_000) } as const;
  const answer = await fetch(url, { ...options, headers: { ...headers, "Content-Type": "application/json" } });
  return { code: answer.status, text: await answer.text() };
}

async function ask(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  const token = { Authorization: `Bearer ${HITL_TOKEN}` };
  const { code, text } = await send(method, HITL_URL + path, { ...token, ...headers }, body);
  if (code >= 200 && code < 300) return JSON.parse(text, exactly);
  if (code === 410) over(`Nothing may run any more: ${text}`);
  console.error(`${code} ${text}`);
  process.exit(code === 429 || code >= 500 ? 1 : 2);
}

/** Pays, and returns the report. */
async function pay(id: string, args: unknown): Promise<object> {
  try {
    const body = JSON.stringify(args);
    const { code, text } = await send("POST", `${PAYMENTS_URL}/refunds`, { "Idempotency-Key": id }, body);
    // Kept as a text, so that it can be reported whatever it is.
    if (code >= 200 && code < 300) return { status: "succeeded", result: text.slice(0, 4000) };
    if ([400, 402, 404, 422].includes(code)) return { status: "failed", error: text.slice(0, 4000) }; // not done
    throw new Error(`The payment system said ${code} ${text}`);
  } catch (error) {
    if (HONOURS_KEYS === "yes") throw error; // the same key next time
    return { status: "unknown", error: String(error).slice(0, 4000) };
  }
}

if (knows("over")) over("");

// Raise. The same key with the same words is the same request, however often it is sent.
const properties = { order_id: { type: "integer" }, amount: { type: "string" } };
const args = { order_id: JSON.rawJSON(order), amount };
const request = { tool_name: "refund", why: "money", args_schema: { type: "object", properties }, args };
let row = await ask("POST", "/interrupts/", { "Idempotency-Key": job }, JSON.stringify(request));

// Wait.
while (row.status === "pending") row = await ask("GET", `/interrupts/${row.id}/?wait=30`);

// Consume. The key is on disk before it is used; who has lost this folder is refused.
if (!knows("key")) note("key", randomUUID());
const key = { "Idempotency-Key": recall("key") };
const found = await ask("POST", `/interrupts/${row.id}/consume/`, key, "{}");

// Act, at most once: what is noted as begun is begun again only under a key that is honoured.
if (!knows("outcome")) {
  if (found.status !== "decided" || !["approve", "edit"].includes(found.decision)) {
    over(`Nothing more to do: ${found.status}, ${found.decision}. ${found.reason}`);
  }
  let report: object = { status: "unknown", error: "The agent was stopped while it acted." };
  if (!knows("acting") || HONOURS_KEYS === "yes") {
    if (!knows("acting")) note("acting", found.id);
    report = await pay(found.id, found.args);
  }
  note("outcome", JSON.stringify(report));
}

// Report. Said again after a crash, it is the same report.
await ask("POST", `/interrupts/${found.id}/outcome/`, key, recall("outcome"));
over(recall("outcome"));

declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(text: string, reviver: (name: string, value: unknown, context: { source: string }) => unknown): any;
  }
}
