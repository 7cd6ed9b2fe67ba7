import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { ByteBlocks } from "../../base/byte_blocks.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { RecentRate } from "../../base/recent_rate.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import {
  type FetchEnd,
  FetchError,
  type FetchListener,
  type NarOrder,
  narOrderOf,
  type NarPart,
  type NarSink,
  type ResumePoint,
} from "../fetch/nar_fetcher.ts";
import { type DownloadState, nextState, readableUpTo } from "../verify/download_state.ts";
import { WHOLE_BYTES_MAX } from "../nar/nar_answer.ts";
import { hasKnownFileHash } from "../nar/nar_naming.ts";
import { checkFile, checkNar } from "../verify/check_nar.ts";
import {
  type PassThroughCheck,
  passThroughCheck,
  type PassThroughCheckParts,
} from "../verify/pass_through_check.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Notifier } from "../../base/notifier.ts";

/**
 * The client of a pass-through. It takes one piece at a time: `give` waits until the client needs
 * the next.
 */
export class ClientReader {
  readonly #changed = new Notifier();
  #part: NarPart | undefined;
  #piece: Bytes | undefined;
  #isOver = false;
  #error: unknown;

  /** `rest`: the part for a client that has begun to read another copy. */
  constructor(rest?: NarPart) {
    this.#part = rest;
  }

  /** The bytes that the client already has. */
  get sent(): (NarPart["sent"] & { readonly end: number }) | undefined {
    return this.#part?.sent && { ...this.#part.sent, end: this.#part.start };
  }

  /** The requested part; `undefined` when the client left before its request. */
  async part(): Promise<NarPart | undefined> {
    while (this.#part === undefined && !this.#isOver) await this.#changed.notified();
    return this.#part;
  }

  /** Resolves when the client needs the next piece, or has left. */
  async give(piece: Bytes): Promise<void> {
    if (this.#isOver) return;
    this.#piece = piece;
    this.#changed.notify();
    while (this.#piece === piece && !this.#isOver) await this.#changed.notified();
  }

  /** No more pieces follow. The client still gets the last one. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#changed.notify();
  }

  /** The bytes of `part`; once. */
  pieces(part: NarPart): AsyncGenerator<Bytes> {
    const pieces = this.#taken(part);
    const end = pieces.return.bind(pieces);
    return Object.assign(pieces, {
      // A client may leave before its first read: then the generator has not begun.
      return: (value: undefined) => {
        this.#piece = undefined;
        this.end();
        return end(value);
      },
    });
  }

  async *#taken(part: NarPart): AsyncGenerator<Bytes> {
    this.#part = part;
    this.#changed.notify();
    try {
      for (;;) {
        while (this.#piece === undefined && !this.#isOver) await this.#changed.notified();
        if (this.#piece === undefined) break;
        yield this.#piece;
        this.#piece = undefined;
        this.#changed.notify();
      }
      if (this.#error !== undefined) throw this.#error;
    } finally {
      this.#piece = undefined;
      this.end();
    }
  }
}

export interface ClientSinkParts {
  /** The NAR, and the check of its bytes. */
  readonly check: PassThroughCheckParts;
  readonly client: ClientReader;
  readonly listener: FetchListener;
}

/** Bytes that wait for the client, or for the check result. `end`: their end in the file. */
interface Held {
  readonly bytes: Bytes;
  readonly end: number;
}

/**
 * The client of a pass-through, as a sink. It takes the next piece when the client has taken the
 * last. It collects a small file, which another source may replace until the check result, or
 * until its client has waited long enough.
 */
export class ClientSink implements NarSink {
  readonly order: NarOrder;
  readonly rate = new RecentRate();
  readonly #parts: ClientSinkParts;
  readonly #hash = createHash("sha256");
  /** `undefined` where the file hash is the NAR hash. */
  readonly #check: PassThroughCheck | undefined;
  #state: DownloadState = { state: "opening" };
  #fileSize: number | undefined;
  /** The bytes of a small file. */
  #whole: ByteBlocks | undefined;
  readonly #held: Held[] = [];
  /** True once the client has bytes from this sink. */
  #hasGiven = false;
  /** Ends when the client has all pieces that it may have: they are given one after the other. */
  #releasing: Promise<void> = Promise.resolve();
  #firstUpstream: string | undefined;

  constructor(parts: ClientSinkParts) {
    this.#parts = parts;
    this.order = narOrderOf(parts.check.nar);
    this.#fileSize = this.order.fileSize;
    this.#check = passThroughCheck(parts.check);
  }

  get copies(): boolean {
    return false;
  }

  get state(): DownloadState {
    return this.#state;
  }

  get received(): number {
    if (this.#state.state === "receiving") return this.#state.received;
    return this.#state.state === "received" ? this.#state.fileSize : 0;
  }

  /** The URL of the source of the first bytes. */
  get firstUpstream(): string | undefined {
    return this.#firstUpstream;
  }

  get fileSize(): number | undefined {
    return this.#fileSize;
  }

  get digest(): Uint8Array {
    return this.#hash.copy().digest();
  }

  /** True where the client gets the whole file at once, after the check result. */
  get isSmall(): boolean {
    return this.#whole !== undefined;
  }

  /** All bytes of a small file after the check result; else `undefined`. */
  whole(): Bytes | undefined {
    return this.#whole?.joined();
  }

  /**
   * Its client waits no longer for all of a small file: it gets the bytes that are here, and the
   * rest as it comes. From then on no other file can replace it.
   */
  stopCollecting(): void {
    const whole = this.#whole;
    // A right file leaves whole.
    if (whole === undefined || this.#isVerified) return;
    this.#whole = undefined;
    if (whole.byteLength > 0) this.#hold(whole.joined(), whole.byteLength);
    void this.#release();
  }

  /** Every source begins where the last one ended: the hash judges the bytes. */
  resumeAt(): ResumePoint {
    return { offset: this.received };
  }

  begin(
    { upstream }: Pick<NarSource, "upstream">,
    { fileSize }: { readonly fileSize?: number },
  ): void {
    if (this.received > 0) return;
    this.#firstUpstream = upstream;
    this.#fileSize = this.order.fileSize ?? fileSize;
    const isSmall = (this.#fileSize ?? this.order.fileSizeMax) <= WHOLE_BYTES_MAX;
    const isRest = this.#parts.client.sent !== undefined;
    this.#whole = isSmall && !isRest ? new ByteBlocks() : undefined;
  }

  /** False if the bytes differ from those that the client had before. Others cannot be compared. */
  has(bytes: Uint8Array, position: number): boolean {
    const { sent } = this.#parts.client;
    if (sent === undefined) return true;
    const from = Math.max(position, sent.from);
    const end = Math.min(position + bytes.length, sent.end);
    if (from >= end) return true;
    const known = sent.at(from, end - from);
    return Buffer.compare(bytes.subarray(from - position, end - position), known) === 0;
  }

  async write(bytes: Bytes): Promise<void> {
    const position = this.received;
    if (!this.has(bytes, position)) {
      throw new FetchError("differs", "it is not the file that was begun");
    }
    this.#hash.update(bytes);
    await this.#check?.write(bytes).catch((error) => {
      throw new FetchError("room", messageOf(error));
    });
    this.#open();
    const received = position + bytes.length;
    this.#state = nextState(this.#state, { type: "bytes", received });
    this.rate.note(received);
    this.#parts.listener.progress({ type: "bytes", received });
    if (this.#whole !== undefined) return this.#whole.add(bytes);
    this.#hold(bytes, received);
    await this.#release();
  }

  pause(): void {}

  /** Checks the whole file, then releases its last bytes to the client. Throws a Mismatch. */
  async judge({ digest, fileSize }: FetchEnd): Promise<void> {
    const { nar } = this.#parts.check;
    checkFile(nar, { fileHash: sha256FromDigest(digest), fileSize });
    if (this.#check === undefined) checkNar(nar, { kind: "measured", digest, narSize: fileSize });
    this.#open();
    this.#state = nextState(this.#state, {
      type: "end",
      fileSize,
      released: hasKnownFileHash(nar),
    });
    if (this.#state.state === "failed") throw new Failure("corrupt", this.#state.reason);
    await this.#check?.end();
    this.#state = nextState(this.#state, { type: "verified" });
    // A slow client must not delay the check result.
    void this.#finish();
  }

  [Symbol.dispose](): void {
    this.#check?.[Symbol.dispose]();
  }

  #open(): void {
    if (this.#state.state !== "opening") return;
    const fileSize = this.#fileSize;
    this.#state = nextState(this.#state, {
      type: "opened",
      ...(fileSize === undefined ? {} : { fileSize }),
    });
  }

  get #isVerified(): boolean {
    return this.#state.state === "received" && this.#state.verified === true;
  }

  #hold(bytes: Bytes, end: number): void {
    this.#held.push({ bytes, end });
  }

  async #finish(): Promise<void> {
    if (this.#whole === undefined) await this.#release();
    this.#parts.client.end();
  }

  /** Gives the client the released bytes of its part. */
  #release(): Promise<void> {
    return this.#releasing = this.#releasing.then(async () => {
      const part = await this.#parts.client.part() ?? NOTHING;
      for (let piece = this.#next(part); piece !== undefined; piece = this.#next(part)) {
        this.#hasGiven = true;
        await this.#parts.client.give(piece);
      }
    });
  }

  /** The next released bytes of the part. */
  #next({ start, end = Infinity }: NarPart): Bytes | undefined {
    const readable = readableUpTo(this.#state, end);
    for (let first = this.#held[0]; first !== undefined; first = this.#held[0]) {
      const position = first.end - first.bytes.length;
      if (position >= end || first.end <= start) {
        this.#held.shift();
        continue;
      }
      const wantedEnd = Math.min(first.end, end);
      // The first bytes go at once. Later a piece waits for its last byte: halves cost more.
      const givenEnd = this.#hasGiven ? wantedEnd : Math.min(wantedEnd, readable);
      const from = Math.max(start, position);
      if (givenEnd > readable || givenEnd <= from) break;
      this.#held.shift();
      const rest = first.bytes.subarray(givenEnd - position);
      if (givenEnd < wantedEnd) this.#held.unshift({ bytes: rest, end: first.end });
      return first.bytes.subarray(from - position, givenEnd - position);
    }
    return undefined;
  }
}

const NOTHING: NarPart = { start: 0, end: 0 };
