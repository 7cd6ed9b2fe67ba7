import type { Bytes } from "../../base/bytes.ts";
import { Notifier } from "../../base/notifier.ts";
import type { Socket } from "./request_reader.ts";

/** The reason why `accept` failed; it decides how the server reacts. */
export type AcceptFailure = "listener closed" | "no file handles" | "client gone";

/** Linux and macOS use the same numbers. */
const NO_HANDLES_REGEXP = /\(os error (?:23|24)\)/;
const NO_HANDLES_CODES: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"]);

/**
 * Classifies an error of `accept` or `connect`. A client that resets its connection before that
 * makes `accept` fail too; only that one connection is lost.
 */
export function acceptFailureOf(error: unknown): AcceptFailure {
  if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
    return "listener closed";
  }
  return lacksHandles(error) ? "no file handles" : "client gone";
}

/** True when the process (EMFILE) or the machine (ENFILE) has no file handle left. */
export function lacksHandles(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return "code" in error && NO_HANDLES_CODES.has(error.code) ||
    NO_HANDLES_REGEXP.test(error.message);
}

/** Head and body may leave in two writes. The second one must not wait for an ACK. */
export function setNoDelay(socket: Socket): void {
  if (isTcp(socket)) socket.setNoDelay(true);
}

function isTcp(socket: Socket): socket is Deno.TcpConn {
  return "setNoDelay" in socket;
}

/** The part of a connection used before its client's first bytes. */
export type SilentClient = Pick<Deno.Conn, "read" | "close">;

/** A TLS hello has some 500 bytes, or 1,800. */
const FIRST_BYTES_MAX = 2 * 1024;

/**
 * Connections whose client has sent nothing. Each costs one file handle and nothing more. Beyond
 * the limit larder closes the oldest.
 */
export class SilentClients {
  readonly #countMax: number;
  readonly #nowMs: () => number;
  /** Start times by connection, the oldest first. */
  readonly #sinceMs = new Map<SilentClient, number>();

  constructor(countMax: number, nowMs: () => number) {
    this.#countMax = countMax;
    this.#nowMs = nowMs;
  }

  /**
   * The client's first bytes, as soon as they are enough; `undefined` if it left or was closed.
   * By default one byte is enough.
   */
  async firstBytes(
    client: SilentClient,
    isEnough: (bytes: Uint8Array) => boolean = () => true,
  ): Promise<Bytes | undefined> {
    this.#sinceMs.set(client, this.#nowMs());
    if (this.#sinceMs.size > this.#countMax) this.makeRoom(1);
    const buffer = new Uint8Array(FIRST_BYTES_MAX);
    for (let length = 0; length < buffer.length;) {
      // A reset and our own close make the read throw.
      const read = await client.read(buffer.subarray(length)).catch(() => null);
      if (read === null) return void this.#close(client);
      length += read;
      if (!isEnough(buffer.subarray(0, length))) continue;
      return this.#sinceMs.delete(client) ? buffer.slice(0, length) : undefined;
    }
    return void this.#close(client);
  }

  /** Closes those that are silent for longer; returns how many. */
  closeOverdue(limitMs: number): number {
    const nowMs = this.#nowMs();
    let count = 0;
    for (const [client, sinceMs] of this.#sinceMs) {
      if (nowMs - sinceMs <= limitMs) break;
      this.#close(client);
      count++;
    }
    return count;
  }

  /** Closes the oldest of them; returns how many there were. Default: half of them. */
  makeRoom(countMax = Math.ceil(this.#sinceMs.size / 2)): number {
    const oldest = [...this.#sinceMs.keys().take(countMax)];
    for (const client of oldest) this.#close(client);
    return oldest.length;
  }

  closeAll(): void {
    this.makeRoom(Infinity);
  }

  #close(client: SilentClient): void {
    if (this.#sinceMs.delete(client)) client.close();
  }
}

/** Accepted connections, each given out once it is ready: a slow one delays no other. */
export class ReadySockets {
  readonly #acceptOne: () => Promise<void>;
  readonly #ready: Socket[] = [];
  readonly #changed = new Notifier();
  #accepting: Promise<void> | undefined;

  /** `acceptOne` accepts a connection, which is added as soon as it is ready. */
  constructor(acceptOne: () => Promise<void>) {
    this.#acceptOne = acceptOne;
  }

  add(socket: Socket): void {
    this.#ready.push(socket);
    this.#changed.notify();
  }

  /** Accepts connections until one is ready. Throws the error of `acceptOne`. */
  async next(): Promise<Socket> {
    for (;;) {
      const socket = this.#ready.shift();
      if (socket !== undefined) return socket;
      const changed = this.#changed.notified();
      this.#accepting ??= this.#acceptOne().finally(() => this.#accepting = undefined);
      await Promise.race([changed, this.#accepting]);
    }
  }
}
