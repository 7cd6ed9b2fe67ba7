import type { Bytes } from "../../base/bytes.ts";
import { DirectStream } from "../../base/direct_stream.ts";
import { Failure } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Notifier } from "../../base/notifier.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { clock } from "../../runtime/current.ts";
import type { ReadOptions } from "../../storage/nar_store.ts";
import { type NarAnswer, WHOLE_WAIT_MS } from "../nar/nar_answer.ts";
import type { Compression } from "../../nix/compression.ts";
import { checkNar, Mismatch } from "../verify/check_nar.ts";
import { decoderBytesMax } from "../verify/decoder_bytes.ts";
import type {
  NarCount,
  NarMeasure,
  NarVerifier,
  PassThroughOrder,
  PassThroughVerification,
} from "../verify/nar_verifier.ts";
import { clippedParts, type PartLists, streamOfParts } from "./part_source.ts";
import { RECOMPRESSED_WINDOW_BYTES } from "./recompressed.ts";

/** Memory of the decoders for all clients, who may stall. The largest one takes 129 MiB. */
const DECODERS_BYTES_MAX = 192 << 20;

/** That of a recompressed file, its pieces included. */
const RECOMPRESSED_DECODER_BYTES = RECOMPRESSED_WINDOW_BYTES + (2 << 20);

/** How long a client waits for this memory: half the limit of usual reverse proxies. */
const MEMORY_WAIT_MS = 30_000;

/** The encoding of a file that is decompressed. */
export interface FileForm {
  readonly compression: Compression;
  /** True: larder has recompressed it, with a small window. */
  readonly isRecompressed?: boolean;
}

/** Writes a NAR in a format, piece by piece. */
export interface PieceSpeaker {
  /** True: the verifier gives it bzip2, not the NAR. */
  readonly takesBzip2?: boolean;
  begin(): Bytes;
  speak(piece: Uint8Array): readonly Uint8Array[];
  end(): Bytes;
}

/** Bytes of a form of the NAR in a file. */
export interface UnpackedPart {
  readonly file: NarAnswer;
  readonly form: FileForm;
  /** `undefined` for a file whose NAR nobody knows. It ends without an error if the file does. */
  readonly nar?: NarRow;
  readonly speaker: PieceSpeaker;
  /** The size of this form. */
  readonly fileSize: number;
  readonly start: number;
  readonly end: number;
}

/** Decompresses NAR files for clients that want the NAR, or another form of it. */
export class NarUnpacker {
  readonly #verifier: Pick<NarVerifier, "passThrough">;
  readonly #memory = new MemoryAllowance(DECODERS_BYTES_MAX);
  #running = 0;

  constructor(verifier: Pick<NarVerifier, "passThrough">) {
    this.#verifier = verifier;
  }

  /** True while a client waits for a decoder. */
  get isBusy(): boolean {
    return this.#running > 0;
  }

  /**
   * The last byte waits until the NAR has its signed hash, also that of a part. Recompressed files
   * had it before larder kept them: their last byte waits for the decoder, which compares the
   * checksum of the frame, and a part waits for nothing. Rejects where no byte comes, if that shows
   * soon.
   */
  async read(part: UnpackedPart, options?: ReadOptions): Promise<DirectStream> {
    const memory = this.#memory.share();
    const { file, nar, speaker, fileSize, start, end } = part;
    const { compression, isRecompressed = false } = part.form;
    const decoding = { compression, narSizeMax: nar?.narSize ?? Infinity };
    const bytes = isRecompressed ? RECOMPRESSED_DECODER_BYTES : decoderBytesMax(decoding);
    if (!await memory.takeWithin(bytes, MEMORY_WAIT_MS)) {
      await file[Symbol.asyncDispose]();
      throw new Failure("unavailable", "Cannot unpack NAR: decoders use all of their memory");
    }
    const order: PassThroughOrder = {
      ...{ ...decoding, memoryWaitMs: MEMORY_WAIT_MS, hashesNar: !isRecompressed },
      ...(speaker.takesBzip2 ? { bzip2From: start } : {}),
    };
    this.#running++;
    const pieces = new UnpackedPieces(this.#verifier, order, () => {
      this.#running--;
      memory[Symbol.dispose]();
    });
    pieces.unpack(part, options);
    const whenWhole = !isRecompressed || end >= fileSize;
    const lists = clippedParts(spoken(pieces, speaker), { start, end, whenWhole });
    const { stream, begun } = streamOfParts(lists, () => pieces.close());
    try {
      await clock.within(begun, WHOLE_WAIT_MS);
    } catch (error) {
      pieces.close();
      throw error;
    }
    return stream;
  }
}

async function* spoken(pieces: UnpackedPieces, speaker: PieceSpeaker): PartLists {
  // Nothing is sent of a file that cannot be read.
  let before: readonly Bytes[] = [speaker.begin()];
  for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) {
    yield [...before, ...speaker.speak(piece)];
    before = [];
  }
  yield [...before, speaker.end()];
}

/** The pieces of a NAR that a verifier decompresses. */
class UnpackedPieces {
  readonly #unpacking: PassThroughVerification;
  readonly #over: () => void;
  readonly #changed = new Notifier();
  #source: ReadableStreamDefaultReader<Bytes> | undefined;
  #piece: Bytes | undefined;
  /** Gives the last piece back: the next one may come. */
  #free: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  /** `over`: called once the decoder has ended. */
  constructor(
    verifier: Pick<NarVerifier, "passThrough">,
    order: PassThroughOrder,
    over: () => void,
  ) {
    this.#over = over;
    this.#unpacking = verifier.passThrough(order, (piece) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      [this.#piece, this.#free] = [piece, resolve];
      this.#changed.notify();
      return promise;
    });
  }

  /** Begins. Never throws: `next` does. */
  unpack({ file, nar }: UnpackedPart, options: ReadOptions | undefined): void {
    const end = (ending: { readonly error?: unknown }) => {
      this.#end = ending;
      this.#over();
      this.close();
    };
    this.#write(file, options)
      .then((measure) => checkMeasure(measure, nar))
      .then(() => end({}), (error) => end({ error }));
  }

  /** The next piece, until the call behind it; `undefined` where the NAR was whole and right. */
  async next(): Promise<Bytes | undefined> {
    if (this.#piece === undefined) this.#free?.();
    while (this.#piece === undefined && this.#end === undefined) await this.#changed.notified();
    const piece = this.#piece;
    this.#piece = undefined;
    if (piece === undefined && this.#end !== undefined && "error" in this.#end) {
      throw this.#end.error;
    }
    return piece;
  }

  /** Ends it early. May be called twice. */
  close(): void {
    this.#unpacking[Symbol.dispose]();
    this.#source?.cancel().catch(() => undefined);
    this.#changed.notify();
  }

  async #write(file: NarAnswer, options: ReadOptions | undefined): Promise<NarMeasure | NarCount> {
    const { measure } = this.#unpacking;
    const stream = await file.read(0, undefined, options);
    const source = this.#source = stream.getReader();
    // Damage shows before the file's end, and the reader may have left.
    const leave = () => void source.cancel().catch(() => undefined);
    measure.then(leave, leave);
    // Whoever reads such a stream owns its pieces.
    const isOwned = stream instanceof DirectStream;
    for (let read = await source.read(); !read.done; read = await source.read()) {
      await this.#unpacking.write(read.value, isOwned);
    }
    this.#unpacking.end();
    return await measure;
  }
}

function checkMeasure(measure: NarMeasure | NarCount, nar: NarRow | undefined): void {
  if (nar !== undefined) return checkNar(nar, measure);
  if (measure.kind === "undecodable") throw new Mismatch("undecodable", measure.detail);
}
