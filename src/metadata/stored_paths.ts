import { NIX32_ALPHABET } from "../nix/nix32.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { RowLister } from "./metadata_store.ts";

/** A bit for each value of five characters: 4 MiB. */
const CHARS_PER_BIT = 5;
const BITS = 1 << 5 * CHARS_PER_BIT;

/** Beside a million paths it takes one other path in fifty thousand for a stored one. */
const BITS_PER_PATH = 6;

/** Rows of one query, and the pause behind it: a million of them take a minute. */
const PAGE_ROWS = 2_000;
const PAUSE_MS = 100;

/** After a query that failed. */
const AGAIN_AFTER_MS = 5_000;

const VALUES = new Uint8Array(128);
for (const [value, char] of [...NIX32_ALPHABET].entries()) VALUES[char.charCodeAt(0)] = value;

/**
 * Knows without the database which store paths have a narinfo there. It forgets none, so an evicted
 * path counts until the end of the process.
 */
export class StoredPaths implements Disposable {
  readonly #rows: Pick<RowLister, "listNarinfos">;
  readonly #bits = new Uint32Array(BITS / 32);
  readonly #closing = new AbortController();
  #isDue = false;
  #learning: Promise<void> | undefined;

  constructor(rows: Pick<RowLister, "listNarinfos">) {
    this.#rows = rows;
  }

  has(storePathHash: StorePathHash): boolean {
    for (let at = 0; at < BITS_PER_PATH; at++) {
      const bit = bitOf(storePathHash, at);
      if (((this.#bits[bit >>> 5] ?? 0) >>> (bit & 31) & 1) === 0) return false;
    }
    return true;
  }

  add(storePathHash: StorePathHash): void {
    for (let at = 0; at < BITS_PER_PATH; at++) {
      const bit = bitOf(storePathHash, at);
      this.#bits[bit >>> 5] = (this.#bits[bit >>> 5] ?? 0) | 1 << (bit & 31);
    }
  }

  /** Reads all of them, in the background. Resolves when they are known. Never rejects. */
  learn(): Promise<void> {
    this.#isDue = true;
    return this.#learning ??= this.#learn();
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
  }

  async #learn(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#isDue && !signal.aborted) {
      this.#isDue = false;
      for (let after: string | undefined = ""; after !== undefined && !signal.aborted;) {
        try {
          const page = await this.#rows.listNarinfos(after, PAGE_ROWS);
          for (const { storePathHash } of page) this.add(storePathHash);
          after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.storePathHash;
          if (after !== undefined) await clock.pause(PAUSE_MS, signal);
        } catch {
          await clock.pause(AGAIN_AFTER_MS, signal);
        }
      }
    }
    this.#learning = undefined;
  }
}

/** Store path hashes are hashes: each part of their characters is as good as another hash. */
function bitOf(storePathHash: StorePathHash, at: number): number {
  let bit = 0;
  for (let char = at * CHARS_PER_BIT; char < (at + 1) * CHARS_PER_BIT; char++) {
    bit = bit << 5 | (VALUES[storePathHash.charCodeAt(char)] ?? 0);
  }
  return bit;
}
