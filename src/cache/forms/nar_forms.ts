import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { ChangeWriter, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import type { Compression } from "../../nix/compression.ts";
import { storedName } from "../../nix/stored_name.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { NarAnswer, NarFacts } from "../nar/nar_answer.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { UnsizedZstdSpeaker } from "./raw_zstd.ts";
import { isSpoken, Speaker, type SpokenCompression, spokenSize } from "./spoken_form.ts";
import { type FileForm, NarUnpacker, unpackedFacts } from "./unpacked_nar.ts";

/** A break is written no more often: only its hour matters. */
const BREAKS_EVERY_MS = 60_000;

export interface NarFormsDeps {
  readonly verifier: Pick<NarVerifier, "passThrough">;
  readonly metadata: ChangeWriter;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Answers with a NAR in another form than its file has. A client may remember an older narinfo, and
 * larder may have recompressed the file since, or have lost the recompressed one.
 */
export class NarForms {
  readonly #deps: NarFormsDeps;
  readonly #unpacker: NarUnpacker;

  constructor(deps: NarFormsDeps) {
    this.#deps = deps;
    this.#unpacker = new NarUnpacker(deps.verifier);
  }

  /** The NAR of a file in the compression `to`. The same NAR always makes the same bytes. */
  answer(file: NarAnswer, nar: NarRow, form: FileForm, to: Compression): NarAnswer {
    if (to === form.compression) return file;
    const unpacked = this.#unpacker.unpack(file, nar, form);
    if (to === "none") return unpacked;
    return {
      ...spokenFacts(file, nar, to),
      whole: () => undefined,
      async read(start, end = Infinity, options) {
        const bytes = await unpacked.read(0, undefined, options);
        const parts = spoken(bytes, new Speaker(spokenOf(to), nar.narSize));
        return streamOf(clipped(parts, start, end));
      },
      ...(file.release === undefined ? {} : { release: file.release }),
      [Symbol.asyncDispose]: () => unpacked[Symbol.asyncDispose](),
    };
  }

  /** The NAR of a file that no narinfo names, as zstd. */
  unknownAnswer(file: NarAnswer, compression: Compression): NarAnswer {
    return {
      ...unknownFacts(file),
      whole: () => undefined,
      read: async (start, end = Infinity, options) => {
        const bytes = await this.#unpacker.unpackUnknown(file, { compression }, options);
        return streamOf(clipped(spoken(bytes, new UnsizedZstdSpeaker()), start, end));
      },
      ...(file.release === undefined ? {} : { release: file.release }),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  }

  /**
   * A client may have got a part of a file: larder keeps its form for an hour. Never rejects.
   */
  async broke({ name, kept, brokenAtMs = 0 }: NarRecord): Promise<void> {
    const { metadata, nowMs, log } = this.#deps;
    const atMs = nowMs();
    if (kept?.form !== undefined || atMs - brokenAtMs < BREAKS_EVERY_MS) return;
    try {
      const at = kept?.at ?? storedName(name, "");
      await metadata.apply([{ kind: "nar-broken", at, atMs }]);
    } catch (error) {
      log.warn("broken transfer not noted", {
        nar: name,
        error: messageOf(error),
        hint:
          "larder could not write to its database; a client that resumes may have to start over",
      });
    }
  }
}

/** The facts of such an answer, for HEAD. */
export function formFacts(
  file: NarFacts,
  nar: NarRow,
  { compression }: FileForm,
  to: Compression,
): NarFacts {
  if (to === compression) return file;
  return to === "none" ? unpackedFacts(file, nar) : spokenFacts(file, nar, to);
}

/** Size and bytes are known once the NAR is here. */
export function unknownFacts({ cacheResult }: NarFacts): NarFacts {
  return { cacheResult, fileSize: undefined, tag: undefined };
}

function spokenFacts(file: NarFacts, nar: NarRow, to: Compression): NarFacts {
  const { cacheResult, isFirstOfPrefetch = false } = file;
  const compression = spokenOf(to);
  const fileSize = spokenSize(compression, nar.narSize);
  return { cacheResult, isFirstOfPrefetch, fileSize, tag: `${nar.narHash}-${compression}` };
}

function spokenOf(compression: Compression): SpokenCompression {
  if (isSpoken(compression)) return compression;
  throw new Failure("broken", `Cannot send NAR as ${compression}: larder cannot write it`);
}

interface PieceSpeaker {
  begin(): Bytes;
  speak(piece: Uint8Array): Bytes;
  end(): Bytes;
}

async function* spoken(
  nar: ReadableStream<Bytes>,
  speaker: PieceSpeaker,
): AsyncGenerator<Bytes, void> {
  yield speaker.begin();
  for await (const piece of nar) yield speaker.speak(piece);
  yield speaker.end();
}

/** The bytes from `start` up to `end`. It reads no further. */
async function* clipped(
  pieces: AsyncGenerator<Bytes, void>,
  start: number,
  end: number,
): AsyncGenerator<Bytes, void> {
  let position = 0;
  for await (const piece of pieces) {
    const from = Math.max(0, start - position);
    const bytes = piece.subarray(from, Math.max(from, end - position));
    position += piece.length;
    if (bytes.length > 0) yield bytes;
    if (position >= end) return;
  }
}
