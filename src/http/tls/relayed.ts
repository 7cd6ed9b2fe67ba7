/** What a relay needs of a connection. */
export type End = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close">;

/** How long a client may keep a relay waiting, in milliseconds. */
export interface RelayedTimes {
  /** From its connection to the end of the handshake. */
  readonly handshakeMs: number;
  /** To take what is there for it. */
  readonly stallMs: number;
  /** To say its last word, once the server within has given it up and all is sent. */
  readonly lingerMs: number;
}

/** Why a client was let go. */
export type RelayReason = "incomplete TLS handshake" | "stalled client" | "client stays connected";

/**
 * Most connections are idle: a buffer grows with what comes, and shrinks again. A client that takes
 * nothing keeps one; larger ones were measured as no faster.
 */
const BUFFER_BYTES_MIN = 2 * 1024;
const BUFFER_BYTES_MAX = 64 * 1024;

export interface RelayedEnds {
  readonly client: End;
  readonly inner: End;
}

export interface RelayedBegin {
  /** When the client connected. */
  readonly beganAtMs: number;
  readonly nowMs: () => number;
}

/** A client's connection and the one within that answers it: what one says the other hears. */
export class Relayed {
  readonly #client: End;
  readonly #inner: End;
  readonly #beganAtMs: number;
  readonly #nowMs: () => number;
  readonly #known = Promise.withResolvers<void>();
  #isSecured = false;
  #isGivenUp = false;
  #writingSinceMs: number | undefined;
  /** Since when nothing more is to come but what is on its way, and nothing of that moved. */
  #endingSinceMs: number | undefined;
  #isClosed = false;

  constructor({ client, inner }: RelayedEnds, { beganAtMs, nowMs }: RelayedBegin) {
    this.#client = client;
    this.#inner = inner;
    this.#beganAtMs = beganAtMs;
    this.#nowMs = nowMs;
  }

  /** Resolves when both have said all, or one of them broke. `hello` is what came already. */
  async run(hello: Uint8Array): Promise<void> {
    try {
      await this.#known.promise;
      await writeAll(this.#inner, hello);
      await Promise.all([this.#toInner(), this.#toClient()]);
    } catch {
      // A connection that broke: the other one shall break too.
    } finally {
      this.close();
    }
  }

  /** Why the client has used up its time, if it has. */
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

  /** The server within knows whose connection this is: nothing is passed on before. */
  known(): void {
    this.#known.resolve();
  }

  /** The handshake is over. */
  secured(): void {
    this.#isSecured = true;
  }

  /** The server within has closed its end. Of a handshake that is not over nothing is to come. */
  givenUp(): void {
    this.#isGivenUp = true;
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
      await writeAll(this.#inner, bytes);
      // The server within listens on, so that a client that it refused sees the answer.
      if (!this.#isGivenUp) this.#moved();
    });
  }

  async #toClient(): Promise<void> {
    await copy(this.#inner, this.#client, async (bytes) => {
      this.#writingSinceMs = this.#nowMs();
      await writeAll(this.#client, bytes);
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

async function writeAll(to: End, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
}
