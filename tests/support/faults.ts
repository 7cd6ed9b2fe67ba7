import { Buffer } from "node:buffer";
import { DROP, type Exchange } from "./exact_server.ts";
import { type Answer, type Body, ConnectionCut } from "./wire_answer.ts";

/** A defect of a response that would have been right. */
export type Fault = (
  answer: Answer,
  exchange: Exchange,
) => Answer | typeof DROP | Promise<Answer | typeof DROP>;

/** Flips a bit of the file's byte `at`, counted from its start also when a range is sent. */
export function corruptByteAt(at: number): Fault {
  return (answer) => {
    const position = at - firstByteOf(answer);
    return { ...answer, body: changed(answer.body, position) };
  };
}

/** The connection ends after exactly `bytes` bytes of a body that announced more. */
export function cutAfter(bytes: number): Fault {
  return interruptedAt(bytes, () => Promise.reject(new ConnectionCut()));
}

/**
 * A body without Content-Length or chunks that ends after `bytes` bytes: to a client it looks
 * whole.
 */
export function endAfter(bytes: number): Fault {
  return (answer) => ({ ...answer, framing: "close", body: head(answer.body, bytes) });
}

/** Sends `bytes` bytes, waits for `until` (default: for ever), then sends the rest. */
export function stallAfter(bytes: number, until: Promise<unknown> = forEver()): Fault {
  return interruptedAt(bytes, () => until);
}

/** Not even a status line before `until`. */
export function heldUntil(until: Promise<unknown>): Fault {
  return async (answer) => {
    await until;
    return answer;
  };
}

/**
 * A fault that counts bytes of the body, counted from the file's start instead. A request for the
 * rest of the file gets no further: `fileFault(cutAfter, 1_000)`.
 */
export function fileFault(fault: (bytes: number) => Fault, position: number): Fault {
  return (answer, exchange) => {
    return fault(Math.max(0, position - firstByteOf(answer)))(answer, exchange);
  };
}

/** The body in chunks, without its length. */
export function chunked(): Fault {
  return (answer) => ({ ...answer, framing: "chunked" });
}

/**
 * The body in chunks of one byte each, many of them in one packet. From `count` bytes on, the rest
 * is one chunk.
 */
export function inByteChunks(count = Infinity): Fault {
  return (answer) => {
    const { body } = answer;
    if (!(body instanceof Uint8Array)) throw new Error("Cannot split a body that is not here");
    const small = body.subarray(0, count);
    const rest = body.subarray(small.length);
    const wire = Buffer.alloc(small.length * BYTE_CHUNK_LENGTH);
    small.forEach((byte, index) => {
      const at = index * BYTE_CHUNK_LENGTH;
      wire.write("1\r\n", at);
      wire[at + 3] = byte;
      wire.write("\r\n", at + 4);
    });
    const last = rest.length === 0 ? [] : [`${rest.length.toString(16)}\r\n`, rest, "\r\n"];
    const parts = [wire, ...last, LAST_CHUNK].map((part) => Buffer.from(part));
    const headers = new Headers([...answer.headers, ["transfer-encoding", "chunked"]]);
    return { ...answer, headers, body: new Uint8Array(Buffer.concat(parts)), framing: "close" };
  };
}

/** A size, a byte, and a line end behind each. */
const BYTE_CHUNK_LENGTH = 6;
const LAST_CHUNK = "0\r\n\r\n";

/** A body that only the end of the connection ends. */
export function closeDelimited(): Fault {
  return (answer) => ({ ...answer, framing: "close" });
}

/** Bytes that do not belong there follow the body, announced like the rest of it. */
export function followedBy(bytes: Uint8Array): Fault {
  return (answer) => ({
    ...answer,
    framing: typeof answer.framing === "number" ? answer.framing + bytes.length : answer.framing,
    body: concat(answer.body, bytes),
  });
}

/** Another status, with a short text as body. */
export function status(code: number, headers: HeadersInit = {}): Fault {
  const body = new TextEncoder().encode(`status ${code}\n`);
  return () => ({ status: code, headers: new Headers(headers), body, framing: body.length });
}

/** The connection is closed before the first byte of an answer. */
export function dropped(): Fault {
  return () => DROP;
}

/** One fault after the other on the same answer. */
export function inOrder(...faults: readonly Fault[]): Fault {
  return async (answer, exchange) => {
    let result: Answer | typeof DROP = answer;
    for (const fault of faults) {
      if (result !== DROP) result = await fault(result, exchange);
    }
    return result;
  };
}

/** The fault for the first `times` requests; later ones get the right answer. */
export function firstTimes(times: number, fault: Fault): Fault {
  let left = times;
  return (answer, exchange) => left-- > 0 ? fault(answer, exchange) : answer;
}

/** A body that comes as the test lets it: `upstream.breakNar(gate.fault)`. */
export class Gate {
  #allowedBytes = 0;
  #reachedBytes = -1;
  #changed = Promise.withResolvers<void>();

  /** Each answer gets up to the released bytes of its own body. */
  readonly fault: Fault = (answer) => ({ ...answer, body: this.#feed(answer.body) });

  /** Lets that many bytes more of every body pass. */
  release(bytes: number): void {
    this.#allowedBytes += bytes;
    this.#wake();
  }

  /** Lets everything pass. */
  open(): void {
    this.release(Infinity);
  }

  /** Resolves when `bytes` bytes of some body are in flight; 0: when one is requested. */
  async reached(bytes: number): Promise<void> {
    while (this.#reachedBytes < bytes) await this.#changed.promise;
  }

  async *#feed(body: Body): AsyncGenerator<Uint8Array> {
    let position = 0;
    this.#note(position);
    for await (const piece of piecesOf(body)) {
      for (let at = 0; at < piece.length;) {
        while (position >= this.#allowedBytes) await this.#changed.promise;
        const part = piece.subarray(at, at + this.#allowedBytes - position);
        yield part;
        at += part.length;
        position += part.length;
        this.#note(position);
      }
    }
  }

  #note(position: number): void {
    if (position <= this.#reachedBytes) return;
    this.#reachedBytes = position;
    this.#wake();
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

const PIECE_BYTES = 256 * 1024;

async function* piecesOf(body: Body): AsyncGenerator<Uint8Array> {
  if (!(body instanceof Uint8Array)) return yield* body;
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES);
}

function interruptedAt(bytes: number, interrupt: () => Promise<unknown>): Fault {
  return (answer) => ({ ...answer, body: interrupted(answer.body, bytes, interrupt) });
}

async function* interrupted(
  body: Body,
  bytes: number,
  interrupt: () => Promise<unknown>,
): AsyncGenerator<Uint8Array> {
  let leftBytes = bytes;
  if (leftBytes === 0) await interrupt();
  for await (const piece of piecesOf(body)) {
    const before = leftBytes;
    leftBytes -= piece.length;
    if (before <= 0 || leftBytes > 0) {
      yield piece;
      continue;
    }
    yield piece.subarray(0, before);
    await interrupt();
    yield piece.subarray(before);
  }
}

async function* head(body: Body, bytes: number): AsyncGenerator<Uint8Array> {
  let leftBytes = bytes;
  for await (const piece of piecesOf(body)) {
    if (leftBytes > 0) yield piece.subarray(0, leftBytes);
    leftBytes -= piece.length;
  }
}

async function* changed(body: Body, position: number): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const piece of piecesOf(body)) {
    const index = position - at;
    at += piece.length;
    if (index < 0 || index >= piece.length) {
      yield piece;
      continue;
    }
    const copy = piece.slice();
    copy[index] = (copy[index] ?? 0) ^ 1;
    yield copy;
  }
}

async function* concat(body: Body, bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* piecesOf(body);
  yield bytes;
}

function firstByteOf({ headers }: Answer): number {
  const range = /^bytes ([0-9]+)-/.exec(headers.get("content-range") ?? "");
  return Number(range?.[1] ?? 0);
}

function forEver(): Promise<never> {
  return new Promise(() => {});
}
