import type { Decoding } from "./decoder_bytes.ts";

export interface VerifyOrder extends Decoding {
  /** The NAR file; it may still be growing. */
  readonly path: string;
}

/** What the decompressed bytes are. */
export type NarMeasure =
  | { readonly kind: "measured"; readonly digest: Uint8Array; readonly narSize: number }
  | { readonly kind: "undecodable"; readonly detail: string };

/** A verification under way; it reads no further than it was told the file has grown. */
export interface Verification extends Disposable {
  /** `fileSize` bytes are there; `whole` says that no more will come. */
  grown(fileSize: number, whole: boolean): void;
  /** Rejects when the file cannot be read, or the verification was ended. */
  readonly measure: Promise<NarMeasure>;
}

export interface PassThroughOrder extends Decoding {
  /** How long it waits for the memory that its decoder needs. */
  readonly memoryWaitMs: number;
}

/** A verification of a file that is not kept: it is handed the pieces. */
export interface PassThroughVerification extends Disposable {
  /** Resolves when they were decoded, or are of no use any more. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** No more will come. */
  end(): void;
  /** Rejects with "unavailable" where the decoder gets no memory, and when it was ended early. */
  readonly measure: Promise<NarMeasure>;
}

/** Decompresses NAR files and hashes what comes out, off the main thread. */
export interface NarVerifier {
  start(order: VerifyOrder): Verification;
  passThrough(order: PassThroughOrder): PassThroughVerification;
}
