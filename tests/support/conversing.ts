import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { type Conversation, EVIL_ID } from "./http_grammar.ts";
import { RawConnection, rawRequest, requestText } from "./raw_http.ts";

/** How a client sends its text, and ends. */
export interface Manner {
  /** Where the text is cut into pieces. */
  readonly cuts: readonly number[];
  /** Between two pieces. */
  readonly pauseMs: number;
  /** "leaves" reads nothing, so that the connection is reset once it is answered. */
  readonly end: "half close" | "leaves";
}

/** A larder that takes longer does not answer, or does not end a connection, at all. */
const HANGS_MS = 60_000;
const PROBE_ID = "probe";

/** Speaks to a server on one connection, and checks the answers. */
export async function converse(
  port: number,
  conversation: Conversation,
  manner: Manner,
): Promise<void> {
  await using connection = await RawConnection.open(port);
  const sent = send(connection, conversation, manner);
  if (manner.end === "leaves") return await sent;
  const checked = check(connection, conversation, sent).then(() => true);
  assert.ok(await clock.within(checked, HANGS_MS), "the connection ends");
}

async function send(
  connection: RawConnection,
  { text, staysOpen }: Conversation,
  { cuts, pauseMs, end }: Manner,
): Promise<void> {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  try {
    for (const [at, start] of [0, ...ends].entries()) {
      await connection.send(text.slice(start, ends[at] ?? text.length));
      if (pauseMs > 0) await clock.pause(pauseMs);
    }
    if (end === "half close" && !staysOpen) await connection.closeWrite();
  } catch {
    // The server may refuse the text before it has all of it.
  }
}

async function check(
  connection: RawConnection,
  { expected, othersMax, staysOpen }: Conversation,
  sent: Promise<void>,
): Promise<void> {
  for (const { id, isHead } of expected) {
    assert.equal(await nextId(connection, isHead), id, "each request is answered, in its turn");
  }
  await sent;
  if (staysOpen) {
    await connection.send(requestText("GET", "/healthz", { "X-Request-Id": PROBE_ID }));
    assert.equal(await nextId(connection), PROBE_ID, "the connection is of use");
  }
  let others = 0;
  for (let id = await nextId(connection); id !== undefined; id = await nextId(connection)) {
    if (othersMax < Infinity) assert.notEqual(id, EVIL_ID, "nothing is smuggled");
    assert.ok(++others <= othersMax, `no more than ${othersMax} answers to what is no request`);
  }
}

/** The request id of the next answer; `undefined` when the connection has ended. */
async function nextId(connection: RawConnection, isHead = false): Promise<string | undefined> {
  const { status, headers, reader } = await connection.answer({ isHead });
  if (status === 0) return undefined;
  await reader.read();
  assert.ok(reader.isComplete, "each answer is whole");
  assert.ok(status < 500, `nothing is answered with ${status}`);
  return headers.get("x-request-id") ?? "";
}

const BETWEEN_MS = 10;
const RIGHT = "StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 30\n";

/** A client that asks again and again, and wants right answers. */
export class HonestClient {
  readonly #port: number;
  readonly #running: Promise<void>;
  #isOver = false;
  #count = 0;
  #slowestMs = 0;
  #complaint: unknown;

  constructor(port: number) {
    this.#port = port;
    this.#running = this.#run();
  }

  /** Throws the complaint so far, if any. */
  check(): void {
    if (this.#complaint !== undefined) throw this.#complaint;
  }

  /** Asks no more; says how it was. */
  async over(): Promise<{ readonly count: number; readonly slowestMs: number }> {
    this.#isOver = true;
    await this.#running;
    this.check();
    return { count: this.#count, slowestMs: this.#slowestMs };
  }

  async #run(): Promise<void> {
    while (!this.#isOver && this.#complaint === undefined) {
      try {
        await this.#ask();
      } catch (error) {
        this.#complaint = error;
      }
      await clock.pause(BETWEEN_MS);
    }
  }

  async #ask(): Promise<void> {
    const startedAtMs = performance.now();
    const request = rawRequest(this.#port, requestText("GET", "/nix-cache-info"));
    const answer = await clock.within(request, HANGS_MS);
    assert.deepEqual([answer?.status, new TextDecoder().decode(answer?.body)], [200, RIGHT]);
    const tookMs = performance.now() - startedAtMs;
    this.#count++;
    this.#slowestMs = Math.max(this.#slowestMs, tookMs);
  }
}
