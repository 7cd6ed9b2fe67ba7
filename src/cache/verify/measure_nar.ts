import { createHash, type Hash } from "node:crypto";
import type { Bytes } from "../../base/bytes.ts";
import { Notifier } from "../../base/notifier.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { streamFrom } from "../../base/stream_of.ts";
import { files } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";
import type { Decoding } from "./decoder_bytes.ts";
import { decoded } from "./decoders.ts";
import type { NarCount, NarMeasure, VerifyOrder } from "./nar_verifier.ts";
import { type Pace, sharedPace } from "./pace.ts";

const READ_BYTES = 256 * 1024;

/** The readable part of a growing file. */
export class Growth {
  readonly #changed = new Notifier();
  #fileSize = 0;
  #whole = false;
  #ended = false;

  /** The file has `fileSize` bytes; `whole`: it is complete. */
  grown(fileSize: number, whole: boolean): void {
    this.#fileSize = fileSize;
    this.#whole = whole;
    this.#changed.notify();
  }

  /** Ends the reads. */
  end(): void {
    this.#ended = true;
    this.#changed.notify();
  }

  /** False where `beyond` would wait. */
  isBeyond(position: number): boolean {
    return this.#ended || this.#whole || this.#fileSize > position;
  }

  /** Bytes readable beyond `position`; 0 only at the end of the whole file. Throws when ended. */
  async beyond(position: number): Promise<number> {
    while (!this.isBeyond(position)) await this.#changed.notified();
    if (this.#ended) throw new Error("Cannot measure NAR: cancelled");
    return this.#fileSize - position;
  }
}

/**
 * Decompresses the order's file within `growth` and hashes the NAR. Use it in a Worker. Throws when
 * the file cannot be read; damaged bytes are a result.
 */
export async function measureNar(
  order: VerifyOrder,
  growth: Growth,
  pace: Pace = sharedPace(),
): Promise<NarMeasure> {
  let readError: unknown;
  const bytes = growing(order.path, { growth, pace }, (error) => readError = error);
  const nar = order.givesNar === true ? new Uint8Array(order.narSizeMax) : undefined;
  const measure = await measureBytes(bytes, order, pace, nar);
  if (readError !== undefined) throw readError;
  return measure.kind === "undecodable" || nar === undefined ? measure : { ...measure, nar };
}

/**
 * The measure of any bytes; a read error counts as damage. `nar` gets the NAR. Throws a Failure of
 * the claim.
 */
export async function measureBytes(
  bytes: ReadableStream<Bytes>,
  decoding: Decoding,
  pace: Pace = sharedPace(),
  nar?: Uint8Array,
): Promise<NarMeasure> {
  const hash = createHash("sha256");
  let at = 0;
  const count = await countBytes(bytes, decoding, pace, (piece) => {
    hash.update(piece);
    nar?.set(piece, at);
    at += piece.length;
  });
  return withDigest(count, hash);
}

/** Decompresses the bytes. `taker` gets pieces that it must not keep. */
export async function countBytes(
  bytes: ReadableStream<Bytes>,
  decoding: Decoding,
  pace: Pace,
  taker: (piece: Uint8Array) => Promise<void> | undefined | void,
): Promise<NarCount> {
  const { narSizeMax } = decoding;
  let narSize = 0;
  try {
    for await (const chunk of decoded(bytes, decoding, (claimed) => pace.claim(claimed))) {
      narSize += chunk.length;
      if (narSize > narSizeMax) {
        return { kind: "undecodable", detail: `it holds more than ${narSizeMax} bytes` };
      }
      await taker(chunk);
      await pace.step(narSize);
    }
    return { kind: "counted", narSize };
  } catch (error) {
    if (error instanceof Failure) throw error;
    return { kind: "undecodable", detail: messageOf(error) };
  }
}

/** The measure of a counted NAR. */
export function withDigest(count: NarCount, hash: Hash): NarMeasure {
  return count.kind === "undecodable"
    ? count
    : { ...count, kind: "measured", digest: hash.digest() };
}

interface GrowingParts {
  readonly growth: Growth;
  readonly pace: Pace;
}

function growing(
  path: string,
  { growth, pace }: GrowingParts,
  failed: (error: unknown) => void,
) {
  let file: OpenFile | undefined;
  let position = 0;
  let cancelled = false;
  const close = () => {
    file?.close();
    file = undefined;
  };
  return streamFrom<Bytes>({
    async next() {
      try {
        // Input without output is work, too.
        await pace.step(0);
        while (!growth.isBeyond(position) && pace.starved !== undefined) await pace.starved();
        file ??= files.openSync(path);
        const there = Math.min(READ_BYTES, await growth.beyond(position));
        const bytes = new Uint8Array(there);
        const got = there === 0 ? 0 : file?.readSync(bytes) ?? 0;
        if (got < Math.min(1, there)) throw new Error("Cannot read NAR file: it is too short");
        position += got;
        if (got > 0) return bytes.subarray(0, got);
        close();
      } catch (error) {
        close();
        // A cancelled reader needs no error.
        if (cancelled) return;
        failed(error);
        throw error;
      }
    },
    cancel() {
      cancelled = true;
      close();
    },
  });
}
