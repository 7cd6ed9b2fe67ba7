import type { Bytes } from "../../base/bytes.ts";
import type { Decoding } from "./decoder_bytes.ts";

export interface VerifyOrder extends Decoding {
  /** The path of the NAR file, which may still be growing. */
  readonly path: string;
}

/** The result of decompressing a file. */
export type NarMeasure =
  | { readonly kind: "measured"; readonly digest: Uint8Array; readonly narSize: number }
  | { readonly kind: "undecodable"; readonly detail: string };

/** A running verification; it reads no further than `grown` allows. */
export interface Verification extends Disposable {
  /** The file has `fileSize` bytes; `whole`: it is complete. */
  grown(fileSize: number, whole: boolean): void;
  /** Rejects when the file cannot be read, or the verification was ended. */
  readonly measure: Promise<NarMeasure>;
}

export interface PassThroughOrder extends Decoding {
  /** How long it waits for its decoder's memory. */
  readonly memoryWaitMs: number;
}

/** A verification of a pass-through: its caller writes the pieces. */
export interface PassThroughVerification extends Disposable {
  /** Resolves when the bytes are decoded, or no longer needed. */
  write(bytes: Bytes): Promise<void>;
  /** The file is complete. */
  end(): void;
  /** Rejects with "unavailable" when the decoder gets no memory, and when it was ended early. */
  readonly measure: Promise<NarMeasure>;
}

/** Decompresses NAR files and hashes the NARs, off the main thread. */
export interface NarVerifier {
  start(order: VerifyOrder): Verification;
  passThrough(order: PassThroughOrder): PassThroughVerification;
}
