import type { Bytes } from "../base/bytes.ts";
import type { Codec } from "../nix/content_encoding.ts";

/** The small body of an upstream's answer, to be decoded. */
export interface EncodedOrder {
  /** The encodings, the last one outermost. */
  readonly codecs: readonly Codec[];
  /** The largest decoded body. */
  readonly bytesMax: number;
  /** The upstream that sent it. */
  readonly upstream: string;
}

/** Decodes a body. Throws a Failure "corrupt" for a damaged or larger one. */
export type DecodeBody = (bytes: Bytes, order: EncodedOrder) => Promise<Bytes>;
