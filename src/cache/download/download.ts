import { Bell } from "../../base/bell.ts";
import { Failure } from "../../base/failure.ts";
import { readFully } from "../../base/read_fully.ts";
import type { NarName } from "../../nix/nar_name.ts";
import {
  type DownloadEvent,
  type DownloadState,
  knownFileSize,
  next,
  readableBytes,
} from "./download_state.ts";

const READ_BYTES = 256 * 1024;

/**
 * Near its end a read waits this long for the rest. A small last segment is held up to 40 ms by
 * Nagle's algorithm, which Deno.serve does not turn off; the verdict is quicker.
 */
const TAIL_WAIT_MS = 15;
const TAIL_BYTES = 64 * 1024;

/** One NAR file on its way, for any number of readers, each at its own pace. */
export class Download {
  readonly name: NarName;
  /** The growing file. */
  readonly path: string;
  #state: DownloadState = { state: "opening" };
  readonly #bell = new Bell();

  constructor(name: NarName, path: string) {
    this.name = name;
    this.path = path;
  }

  get state(): DownloadState {
    return this.#state;
  }

  get fileSize(): number | undefined {
    return knownFileSize(this.#state);
  }

  /** True when every byte may be read without waiting. */
  get released(): boolean {
    return this.#state.state === "kept" ||
      (this.#state.state === "received" && this.#state.released);
  }

  advance(event: DownloadEvent): void {
    this.#state = next(this.#state, event);
    this.#bell.ring();
  }

  /**
   * Resolves when the byte at `offset` may be read, or the file turns out to end before it.
   * Throws when the download has failed.
   */
  async readable(offset: number): Promise<void> {
    while (readableBytes(this.#state) <= offset && !this.released) {
      if (this.#state.state === "failed") throw this.#failure(this.#state.reason);
      await this.#bell.rung();
    }
  }

  /** Resolves when everything may be read, the download has failed, or `limitMs` are over. */
  async settledWithin(limitMs: number): Promise<void> {
    const until = performance.now() + limitMs;
    while (!this.released && this.#state.state !== "failed") {
      const leftMs = until - performance.now();
      if (leftMs <= 0) return;
      await this.#bell.rung(leftMs);
    }
  }

  /** Resolves when the download is over, kept or failed. */
  async over(): Promise<void> {
    while (this.#state.state !== "kept" && this.#state.state !== "failed") await this.#bell.rung();
  }

  /** Everything at once. Only when `released`. */
  bytes(): Uint8Array<ArrayBuffer> {
    using file = Deno.openSync(this.path);
    const bytes = new Uint8Array(this.fileSize ?? 0);
    if (readFully(file, bytes) < bytes.length) throw this.#failure("its file is too short");
    return bytes;
  }

  /**
   * The bytes from `start` up to `end` (default: the file's end) as they come in. The file is
   * opened at once, so that moving or removing it later does not matter.
   */
  read(start: number, end = Infinity): ReadableStream<Uint8Array<ArrayBuffer>> {
    const file = Deno.openSync(this.path);
    if (start > 0) file.seekSync(start, Deno.SeekMode.Start);
    let position = start;
    let open = true;
    const close = () => {
      if (open) file.close();
      open = false;
    };
    return new ReadableStream({
      pull: async (controller) => {
        try {
          const wanted = await this.#wanted(position, end);
          if (!open) return;
          if (wanted > 0) {
            const bytes = new Uint8Array(wanted);
            // Synchronous: what was just written is in memory, and a thread hop costs more.
            if (readFully(file, bytes) < wanted) throw this.#failure("its file is too short");
            position += wanted;
            controller.enqueue(bytes);
          }
          if (position < Math.min(end, this.released ? this.fileSize ?? 0 : Infinity)) return;
          close();
          controller.close();
        } catch (error) {
          close();
          controller.error(error);
        }
      },
      cancel: close,
    }, { highWaterMark: 0 });
  }

  /** How many bytes to read next; 0 only at the end. Waits until there are some. */
  async #wanted(position: number, end: number): Promise<number> {
    await this.readable(position);
    const left = Math.min(end, this.fileSize ?? Infinity) - position;
    const there = readableBytes(this.#state) - position;
    if (there < left && left - there < TAIL_BYTES && left < Infinity) {
      await this.settledWithin(TAIL_WAIT_MS);
      if (this.#state.state === "failed") throw this.#failure(this.#state.reason);
    }
    return Math.min(READ_BYTES, left, Math.max(0, readableBytes(this.#state) - position));
  }

  #failure(reason: string): Failure {
    return new Failure("absent", `Cannot read download: ${reason}`, { nar: this.name });
  }
}
