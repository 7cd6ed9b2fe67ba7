import type { Bytes } from "../../base/bytes.ts";
import { DirectStream } from "../../base/direct_stream.ts";
import { Notifier } from "../../base/notifier.ts";
import { Failure } from "../../base/failure.ts";
import { RecentRate } from "../../base/recent_rate.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import {
  type DownloadEvent,
  type DownloadState,
  isReleased,
  knownFileSize,
  nextState,
  readableUpTo,
} from "../fetch/download_state.ts";
import type { NarPart } from "../fetch/nar_fetcher.ts";
import { WHOLE_BYTES_MAX, WHOLE_WAIT_MS } from "../nar/nar_answer.ts";
import { ClientAddresses } from "../../base/client_addresses.ts";
import { type GrowingFile, GrowingSource } from "./growing_file.ts";

/** Larger reads are a tenth faster, and a third more memory at the peak. */
const READ_BYTES = 128 * 1024;

/** This machine cannot keep the file; upstreams may still have it. */
export class NotKept extends Failure {}

/** The reason of a download that another member does, or has done. */
export const ELSEWHERE = "another member downloads it";

/** Another member downloads the file, or has stored it. */
export class KeptElsewhere extends NotKept {}

/** Passes the rest of a file that cannot be kept through to one client. */
export type PassThroughRest = (part: NarPart) => AsyncGenerator<Bytes, void>;

/** A client that reads the growing file. */
export interface DownloadReader {
  readonly passThrough: PassThroughRest;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
}

/** Origin of a download: a client, a prefetch, or a whole file that another process left. */
export type DownloadOrigin = "client" | "prefetch" | "received";

export interface DownloadParts {
  readonly name: NarName;
  readonly file: GrowingFile;
  readonly startedAtMs: number;
  readonly origin: DownloadOrigin;
  /** True for the request of another larder. Default: false. */
  readonly isPassedOn?: boolean;
}

/** One NAR file in flight, for any number of readers, each at its own pace. */
export class Download {
  readonly name: NarName;
  readonly file: GrowingFile;
  readonly startedAtMs: number;
  readonly clients = new ClientAddresses();
  readonly rate = new RecentRate();
  #state: DownloadState = { state: "opening" };
  readonly #changed = new Notifier();
  #isPromised = false;
  #isWanted: boolean;
  readonly origin: DownloadOrigin;

  /** True if another larder requested it: larders on its way were not asked. */
  readonly isPassedOn: boolean;

  constructor({ name, file, startedAtMs, origin, isPassedOn = false }: DownloadParts) {
    this.name = name;
    this.file = file;
    this.startedAtMs = startedAtMs;
    this.origin = origin;
    this.isPassedOn = isPassedOn;
    this.#isWanted = origin === "client";
  }

  /** True if no client waited for the download at its start: a prefetch, or a received file. */
  get isBackground(): boolean {
    return this.origin !== "client";
  }

  /** False until a client waits for the download. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Resolves when this member has the lease to download the file, or it ended before. */
  async hasLease(): Promise<void> {
    const isOpen = () => this.#state.state === "opening" && !this.#state.isOurs;
    while (isOpen()) await this.#changed.notified();
  }

  /** A client joins. */
  want(): void {
    this.#isWanted = true;
  }

  get state(): DownloadState {
    return this.#state;
  }

  /** How long the whole file has waited for the check of its NAR; `undefined`: it does not. */
  get unverifiedMs(): number | undefined {
    const isWaiting = this.#state.state === "received" && !this.#state.verified;
    return isWaiting ? this.rate.idleMs : undefined;
  }

  get fileSize(): number | undefined {
    return knownFileSize(this.#state);
  }

  /** True when every byte may be read without waiting. */
  get released(): boolean {
    return isReleased(this.#state);
  }

  /** True once an answer to the client has begun: its facts about the file must stay true. */
  get isPromised(): boolean {
    return this.#isPromised;
  }

  /** Call it when an answer to the client begins. */
  promise(): void {
    this.#isPromised = true;
  }

  advance(event: DownloadEvent): void {
    this.#state = nextState(this.#state, event);
    if (this.#state.state === "receiving") this.rate.note(this.#state.received);
    if (event.type === "end") this.rate.note(event.fileSize);
    this.#changed.notify();
  }

  /**
   * Resolves when the byte at `offset` may be read by a client that wants the file up to `end`
   * (default: its end). Resolves too when the file ends before `offset`. Throws when the download
   * has failed.
   */
  async readable(offset: number, end = Infinity): Promise<void> {
    while (this.#readable(offset, end) === undefined) await this.#changed.notified();
  }

  /**
   * Waits a second for all of a small download. Then the answer is one piece, and a wrong file
   * can still be replaced by another upstream's. No client gets its last byte later for that.
   */
  async settledIfSmall(fileSize = Infinity): Promise<void> {
    if (fileSize > WHOLE_BYTES_MAX || this.#isSettled) return;
    const settled = async () => {
      while (!this.#isSettled) await this.#changed.notified();
    };
    await clock.within(settled(), WHOLE_WAIT_MS);
  }

  get #isSettled(): boolean {
    return this.released || this.#state.state === "failed";
  }

  /** Resolves when the file is kept, or the download has failed. */
  async ended(): Promise<void> {
    while (this.#state.state !== "kept" && this.#state.state !== "failed") {
      await this.#changed.notified();
    }
  }

  /** Holds the file and lists the client until the scope of the result ends. */
  use(peer: string | undefined): Disposable {
    using held = new DisposableStack();
    held.use(this.file.use());
    held.use(this.clients.enter(peer));
    return held.move();
  }

  /** The whole file. Only when `released`. */
  bytes(): Bytes {
    return this.file.readAt(0, this.fileSize ?? 0);
  }

  /**
   * The bytes from `start` up to `end` (default: the file's end) as they arrive. Where the file
   * turns out not to be kept, the rest comes from `passThrough`. Call it while the file is in use;
   * the stream then holds it.
   */
  read({ passThrough, peer }: DownloadReader, start: number, end = Infinity): DirectStream {
    const at = (from: number, length: number) => this.file.readAt(from, length);
    const source = new GrowingSource({
      file: this.file,
      start,
      use: this.use(peer),
      readable: (position) => this.#readable(position, end),
      changed: this.#changed,
      restAfter: (failure, position) =>
        failure instanceof NotKept
          ? streamOf(passThrough({ start: position, end, sent: { from: start, at } }))
          : undefined,
    });
    return new DirectStream(source, READ_BYTES);
  }

  /**
   * The count of bytes from `offset` on for a client that wants the file up to `end`; 0 at the end.
   * `undefined`: none yet. Throws when the download has failed.
   */
  #readable(offset: number, end: number): number | undefined {
    const last = Math.min(end, this.fileSize ?? Infinity, readableUpTo(this.#state, end));
    if (this.released || last > offset) return Math.max(0, last - offset);
    if (this.#state.state === "failed") throw this.#failure(this.#state);
    return undefined;
  }

  #failure(
    { reason, mayPassThrough }: { readonly reason: string; readonly mayPassThrough?: boolean },
  ): Failure {
    const notKept = reason === ELSEWHERE ? KeptElsewhere : NotKept;
    const kind = mayPassThrough ? notKept : Failure;
    return new kind("absent", `Cannot read download: ${reason}`, { nar: this.name });
  }
}
