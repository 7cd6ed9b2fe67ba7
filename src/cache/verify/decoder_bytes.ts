import type { Codec } from "../../nix/content_encoding.ts";
import { windowBytesMax } from "./zstd_frames.ts";

const MIB = 1 << 20;

/**
 * The most memory that a decoder holds, its output included. It has a dictionary or window, at most
 * the NAR's size, and the output of one input piece.
 */
const HELD_BYTES_MAX: Readonly<Record<Codec | "none", (narSize: number) => number>> = {
  none: () => 0,
  xz: (narSize) => MIB + Math.min(narSize, 64 * MIB),
  zstd: (narSize) => MIB + windowBytesMax(narSize),
  gzip: () => 8 * MIB,
  deflate: () => 8 * MIB,
  // A block and its tables.
  bzip2: () => 6 * MIB,
  br: () => 20 * MIB,
};

export interface Decoding {
  readonly compression: Codec | "none";
  /** Decoding stops beyond this size. */
  readonly narSizeMax: number;
}

/** The most memory that decompressing may take, in bytes. */
export function decoderBytesMax({ compression, narSizeMax }: Decoding): number {
  return HELD_BYTES_MAX[compression](narSizeMax);
}
