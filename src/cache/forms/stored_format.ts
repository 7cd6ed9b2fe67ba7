import type { Bytes } from "../../base/bytes.ts";

/**
 * A compressed format whose blocks may hold their bytes as they are. So larder can write a NAR in
 * it without compressing: it *speaks* the format, and knows the size beforehand.
 */
export interface StoredFormat {
  /** The NAR bytes of each block but the last one. */
  readonly blockBytes: number;
  /** The bytes before each block. */
  readonly blockHeadBytes: number;
  /** True: an empty NAR has one block, of no bytes. */
  readonly hasEmptyBlock: boolean;
  head(narSize: number): Bytes;
  blockHead(byteLength: number, place: { isFirst: boolean; isLast: boolean }): readonly number[];
  /** The bytes behind all blocks; their count depends on the size alone. */
  tail(narSize: number, narCrc32: number): Bytes;
}
