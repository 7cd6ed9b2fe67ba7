import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { FetchOutcome, NarSink } from "../../src/cache/fetch/nar_fetcher.ts";
import { SinkFetch } from "../../src/cache/fetch/sink_fetcher.ts";
import type { NarBody, NarRequest } from "../../src/upstream/upstream.ts";
import type { Clauses } from "./contract.ts";

export const FILE = new TextEncoder().encode("abcdefghij");

/** The narinfo's facts about the file. */
export interface FileFacts {
  readonly hash: boolean;
  readonly size: boolean;
}

/** Makes a sink for FILE. */
export interface SinkMaker {
  /** Whether the sink can compare bytes that came before. */
  readonly hasBytes: boolean;
  open(facts: FileFacts): NarSink;
}

const ALL: FileFacts = { hash: true, size: true };

export const narSinkClauses: Clauses<SinkMaker> = {
  "a whole file ends with its size and its digest": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.deepEqual(await scene.from(body("abcdef", "ghij")), whole());
  },

  "after a break the next source sends the rest": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.equal(reasonOf(await scene.from(broken("abcd"))), "upstream");
    assert.deepEqual(await scene.from({ ...body("efghij"), offset: 4 }), whole());
    assert.deepEqual(scene.offsets, [0, 4]);
  },

  "bytes that are here are not taken twice from a source without ranges": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    await scene.from(broken("abcd"));
    assert.deepEqual(await scene.from(body("ab", "cdefghij")), whole());
  },

  "other bytes in place of those that are here are no rest": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    await scene.from(broken("abcd"));
    const outcome = await scene.from(body("abXdefghij"));
    // A sink whose client has the bytes leaves them to the check of the whole file.
    if (!maker.hasBytes) return assert.equal(outcome.type, "end");
    assert.equal(reasonOf(outcome), "differs");
    assert.equal(scene.sink.received, 4);
  },

  "an answer that begins too late is no rest": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.equal(reasonOf(await scene.from({ ...body("cdefghij"), offset: 2 })), "upstream");
    assert.equal(scene.sink.received, 0);
  },

  "an answer of another size than the narinfo's is refused by its head": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.equal(reasonOf(await scene.from({ ...body("abc"), fileSize: 3 })), "size");
    assert.equal(scene.sink.received, 0);
  },

  "once bytes are here a source of another size is refused": async (maker) => {
    await using scene = new Scene(maker.open({ hash: true, size: false }));
    await scene.from({ ...broken("abcd"), fileSize: 10 });
    assert.equal(reasonOf(await scene.from({ ...body("abcdefghijk"), fileSize: 11 })), "differs");
  },

  "before the first byte a source of another size may follow": async (maker) => {
    await using scene = new Scene(maker.open({ hash: true, size: false }));
    await scene.from({ ...broken(), fileSize: 11 });
    assert.deepEqual(await scene.from({ ...body("abcdefghij"), fileSize: 10 }), whole());
  },

  "with a known hash, bytes behind the file are not read": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.deepEqual(await scene.from(body("abcdefghijklm")), { ...whole(), surplus: true });
  },

  "without a known hash more bytes than announced are not the file": async (maker) => {
    await using scene = new Scene(maker.open({ hash: false, size: true }));
    assert.equal(reasonOf(await scene.from(body("abcdefghijklm"))), "size");
  },

  "a body that ends early is a break": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.equal(reasonOf(await scene.from(body("abcd"))), "upstream");
    assert.equal(scene.sink.received, 4);
  },

  "a body that stalls is given up": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.equal(reasonOf(await scene.from(still("abcd"))), "stalled");
  },

  "a body that stalls behind its last byte is whole": async (maker) => {
    await using scene = new Scene(maker.open(ALL));
    assert.deepEqual(await scene.from(still("abcdefghij")), whole());
  },

  "of two sources the first to answer writes, the other is outrun": async (maker) => {
    for (const other of [undefined, body("abcdefghij")]) {
      await using scene = new Scene(maker.open(ALL));
      const both = [scene.from(body("abcdefghij")), scene.from(other)];
      const [first, late] = await Promise.all(both);
      assert.deepEqual([first, late && reasonOf(late)], [whole(), "outrun"]);
    }
  },
};

/** The sources of one sink, and the requests to them. */
class Scene implements AsyncDisposable {
  readonly sink: NarSink;
  readonly offsets: number[] = [];
  readonly #fetch: SinkFetch;

  constructor(sink: NarSink) {
    this.sink = sink;
    this.#fetch = new SinkFetch(() => sink);
  }

  /** `undefined` answers only when the request is given up. */
  async from(answer: NarBody | undefined): Promise<FetchOutcome> {
    const openNar = (_location: string, { offset, signal }: NarRequest) => {
      this.offsets.push(offset);
      return answer === undefined ? abortion(signal) : Promise.resolve(answer);
    };
    const { requests: _, ...outcome } = await this.#fetch.from({
      upstream: { openNar },
      source: { upstream: "https://one.example", location: "nar/x" },
      idleTimeoutMs: 50,
      taken: () => undefined,
    });
    return outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fetch[Symbol.asyncDispose]();
  }
}

function abortion(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

function whole(): FetchOutcome {
  const digest = createHash("sha256").update(FILE).digest();
  return { type: "end", fileSize: FILE.length, digest, maybeShort: false };
}

function reasonOf(outcome: FetchOutcome): string {
  return outcome.type === "failed" ? outcome.reason : outcome.type;
}

type Ending = "close" | "break" | "stand";

function bodyOf(pieces: readonly string[], ending: Ending): NarBody {
  const left = pieces.map((piece) => new TextEncoder().encode(piece));
  const stream = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) return controller.enqueue(piece);
      if (ending === "break") return controller.error(new Error("it broke"));
      if (ending === "stand") return new Promise(() => undefined);
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
  return { body: stream, offset: 0, framed: true };
}

const body = (...pieces: string[]) => bodyOf(pieces, "close");
const broken = (...pieces: string[]) => bodyOf(pieces, "break");
const still = (...pieces: string[]) => bodyOf(pieces, "stand");
