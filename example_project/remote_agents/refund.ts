// A remote agent in TypeScript: refunds an order once a person has approved it.
//
//     export HITL_URL=http://127.0.0.1:8000/api HITL_TOKEN=hac_...
//     export PAYMENTS_URL=http://127.0.0.1:8900
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
const sync = (folder: string) => fs.fsyncSync(fs.openSync(folder, "r"));
fs.mkdirSync(state, { recursive: true });
sync(`${state}/..`);

const knows = (name: string) => fs.existsSync(`${state}/${name}`);
const recall = (name: string) => fs.readFileSync(`${state}/${name}`, "utf8");
/** The fact is there in full or not at all, outlives a crash and never changes. */
function note(name: string, text: string): void {
  const draft = `${state}/.${name}.${randomUUID()}`;
  fs.writeFileSync(draft, text, { flush: true });
  fs.linkSync(draft, `${state}/${name}`); // fails if it is there: of two processes, one goes on
  sync(state);
  fs.rmSync(draft);
}
function over(text: string): never {
  note("over", text);
  console.log(text);
  process.exit(0);
}

/** A number that JavaScript would round, or write in another way, stays as it came. */
const exactly = (_name: string, value: unknown, { source }: { source: string }) =>
  typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value;

/** If nobody answers, the error ends the process with 1, as it should. */
async function send(method: string, url: string, headers: Record<string, string>, body?: string) {
  const all = { "Content-Type": "application/json", ...headers };
  const signal = AbortSignal.timeout(60_000);
  const answer = await fetch(url, { method, headers: all, body, signal, redirect: "manual" });
  return { code: answer.status, text: await answer.text() };
}
async function ask(method: string, path: string, headers = {}, body?: string) {
  const all = { Authorization: `Bearer ${HITL_TOKEN}`, ...headers };
  const { code, text } = await send(method, HITL_URL + path, all, body);
  if (code >= 200 && code < 300) return JSON.parse(text, exactly);
  if (code === 410) over(`Nothing may run any more: ${text}`);
  console.error(`${code} ${text}`);
  process.exit(code === 429 || code >= 500 ? 1 : 2);
}

/** Pays, and returns what is to be reported: a text, so that it can be, whatever it is. */
async function pay(id: string, body: string): Promise<object> {
  try {
    const key = { "Idempotency-Key": id };
    const { code, text } = await send("POST", `${PAYMENTS_URL}/refunds`, key, body);
    const said = text.slice(0, 4000);
    if (code >= 200 && code < 300) return { status: "succeeded", result: said };
    if ([400, 402, 404, 422].includes(code)) return { status: "failed", error: said }; // not done
    throw new Error(`The payment system said ${code} ${said}`);
  } catch (error) {
    if (HONOURS_KEYS === "yes") throw error; // the same key next time
    return { status: "unknown", error: String(error) };
  }
}

if (knows("over")) {
  console.log(recall("over"));
  process.exit(0);
}

// Raise. The same key with the same words is the same request, however often it is sent.
const properties = { order_id: { type: "integer" }, amount: { type: "string" } };
const args_schema = { type: "object", properties };
const args = { order_id: JSON.rawJSON(order), amount };
const request = JSON.stringify({ tool_name: "refund", why: "money", args_schema, args });
let row = await ask("POST", "/interrupts/", { "Idempotency-Key": job }, request);

// Wait.
while (row.status === "pending") row = await ask("GET", `/interrupts/${row.id}/?wait=30`);

// Consume. The key is on disk before it is used; who has lost this folder is refused.
if (!knows("key")) note("key", randomUUID());
const key = { "Idempotency-Key": recall("key") };
const found = await ask("POST", `/interrupts/${row.id}/consume/`, key, "{}");

// Act, at most once: what is noted as begun is begun again only under a key that is honoured.
if (!knows("outcome")) {
  if (found.status !== "decided" || !["approve", "edit"].includes(found.decision)) {
    const reason = JSON.stringify(found.reason);
    over(`Nothing more to do: ${found.status}, ${found.decision}. ${reason}`);
  }
  let outcome: object = { status: "unknown", error: "The agent was stopped while it acted." };
  if (!knows("acting") || HONOURS_KEYS === "yes") {
    if (!knows("acting")) note("acting", found.id);
    outcome = await pay(found.id, JSON.stringify(found.args));
  }
  note("outcome", JSON.stringify(outcome));
}

// Report. Said again after a crash, it is the same report.
await ask("POST", `/interrupts/${found.id}/outcome/`, key, recall("outcome"));
over(recall("outcome"));

declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(text: string, reviver: typeof exactly): any;
  }
}
