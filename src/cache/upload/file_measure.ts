import { readFully } from "../../base/files.ts";
import { networkOf } from "../../base/network_of.ts";
import { type Compression, compressionOfMagic, MAGIC_BYTES } from "../../nix/compression.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import { files } from "../../runtime/current.ts";
import type { NarMeasure, NarVerifier, Verification } from "../verify/nar_verifier.ts";
import { Failure } from "../../base/failure.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { Client } from "../nar/nar_answer.ts";
import { UploadRefused } from "./upload_body.ts";

/**
 * How much larger than its file a NAR may be. A bomb of a megabyte so costs a second or two. Real
 * NARs reach 50.
 */
const EXPANSION_MAX = 1_000;

/** Any file may hold so much: an empty disk image, say. */
const NAR_BYTES_MIN = 2 ** 30;

/** Processor time of a small file, with which a NAR of a gibibyte is done. */
const BUDGET_MS = 2_000;

/** The slowest decoder on a slow machine. Time beyond this is spent while nobody else waits. */
const FILE_BYTES_PER_MS = 512;

/** The steps in which the verification gets the file's size. */
const STEP_BYTES = 1 << 20;

export interface FileToMeasure {
  readonly path: string;
  readonly compression: Compression;
  /** The announced size of the file. */
  readonly length: number | undefined;
  /** Set for a client's file: it takes turns with those of others, and ends with its client. */
  readonly client?: Client;
}

/** The NAR in a file. */
export interface MeasuredNar {
  /** Compression by the file's content; its name may differ. */
  readonly compression: Compression;
  readonly narHash: Sha256;
  readonly narSize: number;
}

/** The NAR hash of a growing file: an upload, or an entry of an import. */
export class FileMeasure implements Disposable {
  readonly #verifier: Pick<NarVerifier, "start">;
  readonly #file: FileToMeasure;
  #verification: Verification | undefined;
  #reportedBytes = 0;

  constructor(verifier: Pick<NarVerifier, "start">, file: FileToMeasure) {
    this.#verifier = verifier;
    this.#file = file;
    // Without a size the bound is known at the end only.
    const { length, compression } = file;
    if (length !== undefined && compression !== "none") this.#start(length, compression);
  }

  grown(fileSize: number): void {
    if (fileSize - this.#reportedBytes < STEP_BYTES) return;
    this.#reportedBytes = fileSize;
    this.#verification?.grown(fileSize, false);
  }

  /** The file is whole. Throws UploadRefused where it cannot be decoded. */
  async end(
    { fileHash, fileSize }: { readonly fileHash: Sha256; readonly fileSize: number },
  ): Promise<MeasuredNar> {
    const { compression: named, path } = this.#file;
    const compression = named === "none" ? sniffed(path) : named;
    if (compression === "none") return { compression, narHash: fileHash, narSize: fileSize };
    const verification = this.#verification ?? this.#start(fileSize, compression);
    verification.grown(fileSize, true);
    const measure = await this.#measureOf(verification);
    if (measure.kind === "undecodable") {
      throw new UploadRefused("invalid", `expected a NAR in ${compression}: ${measure.detail}`);
    }
    const { digest, narSize } = measure;
    return { compression, narHash: sha256FromDigest(digest), narSize };
  }

  [Symbol.dispose](): void {
    this.#verification?.[Symbol.dispose]();
  }

  async #measureOf({ measure }: Verification): Promise<NarMeasure> {
    const { signal, hungUp = signal } = this.#file.client ?? {};
    try {
      return await (hungUp === undefined ? measure : unlessAborted(measure, hungUp));
    } catch (error) {
      if (hungUp?.aborted) throw new UploadRefused("cut", "expected a client that waits");
      if (!(error instanceof Failure) || error.kind !== "overloaded") throw error;
      const line = "expected fewer uploads at a time: this was the largest one";
      throw new UploadRefused("overloaded", line);
    }
  }

  #start(fileSize: number, compression: Compression): Verification {
    const { path, client } = this.#file;
    const narSizeMax = Math.max(NAR_BYTES_MIN, EXPANSION_MAX * fileSize);
    const budgetMs = BUDGET_MS + fileSize / FILE_BYTES_PER_MS;
    const turns = client && { turns: { client: client.peer && networkOf(client.peer), budgetMs } };
    return this.#verification = this.#verifier.start({ path, compression, narSizeMax, ...turns });
  }
}

/** Nix names a NAR in gzip like one without compression. */
function sniffed(path: string): Compression {
  using file = files.openSync(path);
  const bytes = new Uint8Array(MAGIC_BYTES);
  return compressionOfMagic(bytes.subarray(0, readFully(file, bytes)));
}
