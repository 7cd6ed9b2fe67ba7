import type { Bytes } from "../../base/bytes.ts";

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
