import { writeFully } from "../../base/files.ts";

/** The part of a connection that a relay uses. */
export type End = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close">;

/** Time limits for a client, in milliseconds. */
export interface RelayedTimes {
  /** Limit from its connection to the end of the handshake. */
  readonly handshakeMs: number;
  /** Limit for reading the bytes sent to it. */
  readonly stallMs: number;
  /** Limit for its last bytes, after the inner server has closed and all is sent. */
  readonly lingerMs: number;
}

/** The reason for closing a client. */
export type RelayReason = "incomplete TLS handshake" | "stalled client" | "client stays connected";

/**
 * Buffers grow with traffic and shrink again, as most connections are idle. A stalled client keeps
 * one. Larger ones were measured as no faster.
 */
const BUFFER_BYTES_MIN = 2 * 1024;
const BUFFER_BYTES_MAX = 64 * 1024;

export interface RelayedEnds {
  readonly client: End;
  readonly inner: End;
}

export interface RelayedBegin {
  /** Time of the client's connection. */
  readonly beganAtMs: number;
  readonly nowMs: () => number;
}

/** A client's connection joined to its inner connection, both ways. */
export class Relayed {
  readonly #client: End;
  readonly #inner: End;
  readonly #beganAtMs: number;
  readonly #nowMs: () => number;
  readonly #known = Promise.withResolvers<void>();
  #isSecured = false;
  #isInnerClosed = false;
  #writingSinceMs: number | undefined;
  /** Time since one side closed and no byte moved. */
  #endingSinceMs: number | undefined;
  #isClosed = false;

  constructor({ client, inner }: RelayedEnds, { beganAtMs, nowMs }: RelayedBegin) {
    this.#client = client;
    this.#inner = inner;
    this.#beganAtMs = beganAtMs;
    this.#nowMs = nowMs;
  }

  /** Resolves when both sides have ended, or one broke. `hello`: bytes that arrived before. */
  async run(hello: Uint8Array): Promise<void> {
    try {
      await this.#known.promise;
      await writeFully(this.#inner, hello);
      await Promise.all([this.#toInner(), this.#toClient()]);
    } catch {
      // If one connection breaks, the other must break too.
    } finally {
      this.close();
    }
  }

  /** The exceeded time limit, if any. */
  overdue({ handshakeMs, stallMs, lingerMs }: RelayedTimes): RelayReason | undefined {
    const nowMs = this.#nowMs();
    if (!this.#isSecured && nowMs - this.#beganAtMs > handshakeMs) {
      return "incomplete TLS handshake";
    }
    if (this.#writingSinceMs !== undefined) {
      return nowMs - this.#writingSinceMs > stallMs ? "stalled client" : undefined;
    }
    return nowMs - (this.#endingSinceMs ?? nowMs) > lingerMs ? "client stays connected" : undefined;
  }

  /** The inner server knows the client, so forwarding begins. */
  known(): void {
    this.#known.resolve();
  }

  /** The handshake is done. */
  secured(): void {
    this.#isSecured = true;
  }

  /** The inner server has closed. An unfinished handshake ends at once. */
  innerClosed(): void {
    this.#isInnerClosed = true;
    if (this.#isSecured) this.#endingSinceMs ??= this.#nowMs();
    else this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#known.resolve();
    this.#client.close();
    this.#inner.close();
  }

  #toInner(): Promise<void> {
    return copy(this.#client, this.#inner, async (bytes) => {
      await writeFully(this.#inner, bytes);
      // The inner server keeps reading, so that a refused client sees the answer.
      if (!this.#isInnerClosed) this.#moved();
    });
  }

  async #toClient(): Promise<void> {
    await copy(this.#inner, this.#client, async (bytes) => {
      this.#writingSinceMs = this.#nowMs();
      await writeFully(this.#client, bytes);
      this.#writingSinceMs = undefined;
      this.#moved();
    });
    this.#endingSinceMs ??= this.#nowMs();
  }

  #moved(): void {
    if (this.#endingSinceMs !== undefined) this.#endingSinceMs = this.#nowMs();
  }
}

async function copy(
  from: End,
  to: End,
  pass: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  for (let buffer = new Uint8Array(BUFFER_BYTES_MIN);;) {
    const length = await from.read(buffer);
    if (length === null) return await to.closeWrite();
    await pass(buffer.subarray(0, length));
    if (length === buffer.length && length < BUFFER_BYTES_MAX) {
      buffer = new Uint8Array(Math.min(4 * buffer.length, BUFFER_BYTES_MAX));
    } else if (length < BUFFER_BYTES_MIN && buffer.length > BUFFER_BYTES_MIN) {
      buffer = new Uint8Array(BUFFER_BYTES_MIN);
    }
  }
}
