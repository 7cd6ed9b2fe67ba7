import type { Compression } from "../../nix/compression.ts";
import { windowBytesMax } from "./zstd_frames.ts";

const MIB = 1 << 20;

/**
 * The most memory that a decoder holds beside its output, or as its output: dictionary or window,
 * which never needs more than the NAR, and what one piece of input may come to.
 */
const HELD_BYTES_MAX: Readonly<Record<Compression, (narSize: number) => number>> = {
  none: () => 0,
  xz: (narSize) => MIB + Math.min(narSize, 64 * MIB),
  zstd: (narSize) => MIB + windowBytesMax(narSize),
  gzip: () => 8 * MIB,
  // A block and its tables.
  bzip2: () => 6 * MIB,
  br: () => 20 * MIB,
};

export interface Decoding {
  readonly compression: Compression;
  /** Decoding stops beyond it. */
  readonly narSizeMax: number;
}

/** How much memory undoing a compression may take. */
export function decoderBytesMax({ compression, narSizeMax }: Decoding): number {
  return HELD_BYTES_MAX[compression](narSizeMax);
}
