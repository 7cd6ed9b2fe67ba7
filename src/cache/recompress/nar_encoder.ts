import type { Bytes } from "../../base/bytes.ts";
import type { Compression } from "../../nix/compression.ts";

/** A NAR file to write again in zstd. */
export interface EncodeOrder {
  /** That of the bytes that are written. */
  readonly compression: Compression;
  readonly narSize: number;
  /** The file to write. It must not exist. */
  readonly path: string;
  /** The encoded file has no more. */
  readonly fileBytesMax: number;
  readonly level: number;
}

export type Encoded =
  | {
    readonly kind: "encoded";
    readonly narDigest: Uint8Array;
    readonly narSize: number;
    readonly fileDigest: Uint8Array;
    readonly fileSize: number;
  }
  | { readonly kind: "too-large" }
  | { readonly kind: "undecodable"; readonly detail: string };

/** A running encoding. Its caller writes the pieces of the file, one at a time. */
export interface NarEncoding extends Disposable {
  /** Resolves when the bytes are encoded, or no longer needed. */
  write(bytes: Bytes): Promise<void>;
  /** The file is complete. */
  end(): void;
  /** Rejects when the file cannot be written, and when it was ended early. */
  readonly encoded: Promise<Encoded>;
}

/** Writes NAR files again in zstd, off the main thread. */
export interface NarEncoder {
  /** `turn` is called before each small part of the NAR: the thread rests until it resolves. */
  start(order: EncodeOrder, turn: () => Promise<void>): NarEncoding;
}
