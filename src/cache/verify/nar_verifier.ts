import type { Bytes } from "../../base/bytes.ts";
import type { Codec } from "../../nix/content_encoding.ts";
import type { Decoding } from "./decoder_bytes.ts";

export interface VerifyOrder extends Decoding {
  /** The path of the NAR file, which may still be growing. */
  readonly path: string;
  /** Set for a file of a client: it takes turns with those of others. */
  readonly turns?: ClientTurns;
  /** The measure has the NAR, too: `narSizeMax` bytes are memory then. */
  readonly givesNar?: boolean;
}

/** The place of a client's bytes among those of other clients. */
export interface ClientTurns {
  /** Its address; `undefined` if unknown. */
  readonly client: string | undefined;
  /** Processor time after which the bytes yield to all others. */
  readonly budgetMs: number;
}

/** A small encoded body to decode. */
export interface BodyOrder {
  readonly compression: Codec;
  /** Decoding stops beyond this size. */
  readonly bytesMax: number;
  /** "shape": the bytes are not needed. */
  readonly result: "bytes" | "shape";
  readonly turns: ClientTurns;
}

export type DecodedBody =
  | { readonly kind: "bytes"; readonly bytes: Bytes }
  | { readonly kind: "shape"; readonly isObject: boolean }
  | { readonly kind: "too-large" }
  | { readonly kind: "damaged"; readonly detail: string };

/** The result of decompressing a file. */
export type NarMeasure =
  | {
    readonly kind: "measured";
    readonly digest: Uint8Array;
    readonly narSize: number;
    readonly nar?: Bytes;
  }
  | { readonly kind: "undecodable"; readonly detail: string };

/** The same without the hash. */
export type NarCount =
  | { readonly kind: "counted"; readonly narSize: number }
  | Extract<NarMeasure, { kind: "undecodable" }>;

/** A running verification; it reads no further than `grown` allows. */
export interface Verification extends Disposable {
  /** The file has `fileSize` bytes; `whole`: it is complete. */
  grown(fileSize: number, whole: boolean): void;
  /**
   * Rejects when the file cannot be read, or the verification was ended; with "overloaded" when its
   * memory went to another client's file.
   */
  readonly measure: Promise<NarMeasure>;
}

export interface PassThroughOrder extends Decoding {
  /** How long it waits for its decoder's memory. */
  readonly memoryWaitMs: number;
  /** False: somebody else vouches for the NAR, and it is only counted. Default: true. */
  readonly hashesNar?: boolean;
  /** The taker gets bzip2 of a NAR of `narSizeMax` bytes, right from this one on. Default: the NAR. */
  readonly bzip2From?: number;
}

/** Writes a NAR in another format, piece by piece, each until the next call. */
export interface NarSpeaker {
  speak(piece: Uint8Array): Iterable<Uint8Array>;
  end(): Uint8Array;
}

/**
 * Takes the pieces of the NAR, one at a time: the next one comes when it resolves. It must not keep
 * the piece: its memory is used again.
 */
export type NarTaker = (piece: Bytes) => Promise<void>;

/** A verification of a pass-through: its caller writes the pieces. */
export interface PassThroughVerification extends Disposable {
  /**
   * Resolves when the bytes are decoded, or no longer needed. `isOwned`: nobody else uses their
   * buffer, nor does the caller any more.
   */
  write(bytes: Bytes, isOwned?: boolean): Promise<void>;
  /** The file is complete. */
  end(): void;
  /** Rejects with "unavailable" when the decoder gets no memory, and when it was ended early. */
  readonly measure: Promise<NarMeasure | NarCount>;
}

/** Decompresses NAR files and hashes the NARs, off the main thread. */
export interface NarVerifier {
  start(order: VerifyOrder): Verification;
  /** `taker`: gets the decompressed bytes. */
  passThrough(order: PassThroughOrder, taker?: NarTaker): PassThroughVerification;
  /**
   * Rejects with "overloaded" when its memory went to another client's body, and with the signal's
   * reason: the work ends.
   */
  decode(bytes: Bytes, order: BodyOrder, signal?: AbortSignal): Promise<DecodedBody>;
}
