import { readFully } from "../../base/files.ts";
import { type Compression, compressionOfMagic, MAGIC_BYTES } from "../../nix/compression.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import { files } from "../../runtime/current.ts";
import type { NarVerifier, Verification } from "../verify/nar_verifier.ts";
import { UploadRefused } from "./upload_outcome.ts";

/**
 * How much larger than its file a NAR may be. A bomb of a megabyte so costs a second or two. Real
 * NARs reach 50.
 */
const EXPANSION_MAX = 1_000;

/** Any file may hold so much: an empty disk image, say. */
const NAR_BYTES_MIN = 2 ** 30;

/** The steps in which the verification gets the file's size. */
const STEP_BYTES = 1 << 20;

export interface FileToMeasure {
  readonly path: string;
  readonly compression: Compression;
  /** The announced size of the file. */
  readonly length: number | undefined;
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
    const measure = await verification.measure;
    if (measure.kind === "undecodable") {
      throw new UploadRefused("invalid", `expected a NAR in ${compression}: ${measure.detail}`);
    }
    const { digest, narSize } = measure;
    return { compression, narHash: sha256FromDigest(digest), narSize };
  }

  [Symbol.dispose](): void {
    this.#verification?.[Symbol.dispose]();
  }

  #start(fileSize: number, compression: Compression): Verification {
    const { path } = this.#file;
    const narSizeMax = Math.max(NAR_BYTES_MIN, EXPANSION_MAX * fileSize);
    return this.#verification = this.#verifier.start({ path, compression, narSizeMax });
  }
}

/** Nix names a NAR in gzip like one without compression. */
function sniffed(path: string): Compression {
  using file = files.openSync(path);
  const bytes = new Uint8Array(MAGIC_BYTES);
  return compressionOfMagic(bytes.subarray(0, readFully(file, bytes)));
}
