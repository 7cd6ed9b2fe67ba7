import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { clock } from "../../runtime/current.ts";
import type { ReadOptions } from "../../storage/nar_store.ts";
import { type NarAnswer, type NarFacts, WHOLE_WAIT_MS } from "../nar/nar_answer.ts";
import type { Compression } from "../../nix/compression.ts";
import { checkNar, Mismatch } from "../verify/check_nar.ts";
import { decoderBytesMax } from "../verify/decoder_bytes.ts";
import type { NarMeasure, NarVerifier } from "../verify/nar_verifier.ts";
import { RECOMPRESSED_WINDOW_BYTES } from "./recompressed.ts";

/** Memory of the decoders for all clients, who may stall. The largest one takes 129 MiB. */
const DECODERS_BYTES_MAX = 192 << 20;

/** That of a recompressed file, its pieces included. */
const RECOMPRESSED_DECODER_BYTES = RECOMPRESSED_WINDOW_BYTES + (1 << 20);

/** How long a client waits for this memory: half the limit of usual reverse proxies. */
const MEMORY_WAIT_MS = 30_000;

/** The facts of the NAR itself. */
export function unpackedFacts(file: NarFacts, { narHash, narSize }: NarRow): NarFacts {
  const { cacheResult, isFirstOfPrefetch = false } = file;
  return { cacheResult, isFirstOfPrefetch, fileSize: narSize, tag: narHash };
}

/** The encoding of a file that is decompressed. */
export interface FileForm {
  readonly compression: Compression;
  /** True: larder has recompressed it, with a small window. */
  readonly isRecompressed?: boolean;
}

/** Decompresses NAR files for clients that want the NAR, or another form of it. */
export class NarUnpacker {
  readonly #verifier: Pick<NarVerifier, "passThrough">;
  readonly #memory = new MemoryAllowance(DECODERS_BYTES_MAX);

  constructor(verifier: Pick<NarVerifier, "passThrough">) {
    this.#verifier = verifier;
  }

  /** The NAR in a file. Its last byte waits until it has the signed hash, also that of a part. */
  unpack(file: NarAnswer, nar: NarRow, form: FileForm = nar): NarAnswer {
    const { narSize } = nar;
    const check = (measure: NarMeasure) => checkNar(nar, measure);
    return {
      ...unpackedFacts(file, nar),
      whole: () => undefined,
      read: (start, end = narSize, options) =>
        this.#read({ file, form, narSizeMax: narSize, check, start, end }, options),
      ...(file.release === undefined ? {} : { release: file.release }),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  }

  /** The NAR in a file whose NAR nobody knows. It ends without an error if the file does. */
  unpackUnknown(
    file: NarAnswer,
    form: FileForm,
    options?: ReadOptions,
  ): Promise<ReadableStream<Bytes>> {
    const [start, end] = [0, Infinity];
    const check = (measure: NarMeasure) => {
      if (measure.kind === "undecodable") throw new Mismatch("undecodable", measure.detail);
    };
    return this.#read({ file, form, narSizeMax: Infinity, check, start, end }, options);
  }

  /** Rejects where no byte comes, if that shows soon. */
  async #read(part: UnpackedPart, options?: ReadOptions): Promise<ReadableStream<Bytes>> {
    const memory = this.#memory.share();
    const { narSizeMax, form: { compression, isRecompressed = false } } = part;
    const bytes = isRecompressed
      ? RECOMPRESSED_DECODER_BYTES
      : decoderBytesMax({ compression, narSizeMax });
    if (!await memory.takeWithin(bytes, MEMORY_WAIT_MS)) {
      await part.file[Symbol.asyncDispose]();
      throw new Failure("unavailable", "Cannot unpack NAR: decoders use all of their memory");
    }
    const { readable, writable } = new TransformStream<Bytes, Bytes>();
    const client = writable.getWriter();
    const begun = Promise.withResolvers<void>();
    const sent = this.#send(part, { client, begun: begun.resolve, options })
      .finally(() => memory[Symbol.dispose]());
    sent.then(() => client.close(), (error) => client.abort(error)).catch(() => undefined);
    await clock.within(Promise.race([begun.promise, sent]), WHOLE_WAIT_MS);
    return readable;
  }

  async #send(
    { file, form: { compression }, narSizeMax, check, start, end }: UnpackedPart,
    { client, begun, options }: UnpackedReader,
  ): Promise<void> {
    let position = 0;
    let last: Bytes | undefined;
    const take = async (piece: Bytes): Promise<void> => {
      const from = Math.max(0, start - position);
      const bytes = piece.subarray(from, Math.max(from, end - position));
      position += piece.length;
      if (bytes.length === 0) return;
      begun();
      if (position >= end) last = bytes.subarray(-1);
      const now = last === undefined ? bytes : bytes.subarray(0, -1);
      // Whoever left is noticed below.
      if (now.length > 0) await client.write(now).catch(() => undefined);
    };
    const memoryWaitMs = MEMORY_WAIT_MS;
    using unpacking = this.#verifier.passThrough({ compression, narSizeMax, memoryWaitMs }, take);
    const source = (await file.read(0, undefined, options)).getReader();
    const leave = () => {
      unpacking[Symbol.dispose]();
      return source.cancel().catch(() => undefined);
    };
    client.closed.catch(leave);
    // Damage shows before the file's end.
    unpacking.measure.then(leave, leave);
    try {
      for (let read = await source.read(); !read.done; read = await source.read()) {
        await unpacking.write(read.value);
      }
      unpacking.end();
      check(await unpacking.measure);
      if (last !== undefined) await client.write(last);
    } finally {
      await leave();
    }
  }
}

/** Bytes of the NAR in a file. */
interface UnpackedPart {
  readonly file: NarAnswer;
  readonly form: FileForm;
  readonly narSizeMax: number;
  /** Throws where the file does not hold the right NAR. */
  readonly check: (measure: NarMeasure) => void;
  readonly start: number;
  readonly end: number;
}

interface UnpackedReader {
  readonly client: WritableStreamDefaultWriter<Bytes>;
  /** Called with the first bytes. */
  readonly begun: () => void;
  readonly options: ReadOptions | undefined;
}
