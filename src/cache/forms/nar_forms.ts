import { messageOf } from "../../base/failure.ts";
import type { ChangeWriter, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import type { Compression } from "../../nix/compression.ts";
import { storedName } from "../../nix/stored_name.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { NarAnswer, NarFacts } from "../nar/nar_answer.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { UnsizedZstdSpeaker } from "./raw_zstd.ts";
import { Speaker, spokenSize } from "./spoken_form.ts";
import {
  type FileForm,
  NarUnpacker,
  type PieceSpeaker,
  type UnpackedPart,
} from "./unpacked_nar.ts";

/** A break is written no more often: only its hour matters. */
const BREAKS_EVERY_MS = 60_000;

/** The NAR itself. */
const PLAIN: PieceSpeaker = {
  begin: () => new Uint8Array(0),
  speak: (piece) => [piece],
  end: () => new Uint8Array(0),
};

/** Its blocks take long: the verifier makes them. */
const BZIP2: PieceSpeaker = { ...PLAIN, takesBzip2: true };

export interface NarFormsDeps {
  readonly verifier: Pick<NarVerifier, "passThrough">;
  readonly metadata: ChangeWriter;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "event">;
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

  /** True while a client waits for a decoder. */
  get isBusy(): boolean {
    return this.#unpacker.isBusy;
  }

  /** The NAR of a file in the compression `to`. The same NAR always makes the same bytes. */
  answer(file: NarAnswer, nar: NarRow, form: FileForm, to: Compression): NarAnswer {
    if (to === form.compression) return file;
    const speaker = () => speakerOf(to, nar.narSize);
    return this.#unpacked(file, formFacts(file, nar, form, to), { form, nar, speaker });
  }

  /** The NAR of a file that no narinfo names, as zstd. */
  unknownAnswer(file: NarAnswer, compression: Compression): NarAnswer {
    const speaker = () => new UnsizedZstdSpeaker();
    return this.#unpacked(file, unknownFacts(file), { form: { compression }, speaker });
  }

  #unpacked(
    file: NarAnswer,
    facts: NarFacts,
    { speaker, ...nar }: Pick<UnpackedPart, "form" | "nar"> & { speaker(): PieceSpeaker },
  ): NarAnswer {
    const { fileSize = Infinity } = facts;
    return {
      ...facts,
      whole: () => undefined,
      read: (start, end = fileSize, options) =>
        this.#unpacker.read({ file, ...nar, speaker: speaker(), fileSize, start, end }, options),
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
      log.event("broken-transfer-not-noted", { nar: name, error: messageOf(error) });
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
  const { cacheResult, isFirstOfPrefetch = false, fileSize: madeOfBytes } = file;
  const { narHash, narSize } = nar;
  const facts = { cacheResult, isFirstOfPrefetch, madeOfBytes };
  if (to === "none") return { ...facts, fileSize: narSize, tag: narHash };
  return { ...facts, fileSize: spokenSize(to, narSize), tag: `${narHash}-${to}` };
}

/** Size and bytes are known once the NAR is here. */
export function unknownFacts({ cacheResult, fileSize: madeOfBytes }: NarFacts): NarFacts {
  return { cacheResult, fileSize: undefined, tag: undefined, madeOfBytes };
}

function speakerOf(compression: Compression, narSize: number): PieceSpeaker {
  if (compression === "none") return PLAIN;
  return compression === "bzip2" ? BZIP2 : new Speaker(compression, narSize);
}
