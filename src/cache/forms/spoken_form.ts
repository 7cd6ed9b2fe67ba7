import { crc32 } from "node:zlib";
import type { Bytes } from "../../base/bytes.ts";
import type { Compression } from "../../nix/compression.ts";
import { RAW_ZSTD } from "./raw_zstd.ts";
import { STORED_BROTLI } from "./stored_brotli.ts";
import type { StoredFormat } from "./stored_format.ts";
import { STORED_GZIP } from "./stored_gzip.ts";
import { spokenBzip2Size } from "./spoken_bzip2.ts";
import { STORED_XZ } from "./stored_xz.ts";

const FORMATS = {
  xz: STORED_XZ,
  zstd: RAW_ZSTD,
  gzip: STORED_GZIP,
  br: STORED_BROTLI,
} as const;

/** The compressions whose blocks may hold their bytes as they are: all but bzip2. */
export type StoredCompression = keyof typeof FORMATS;

/** The bytes of a NAR's spoken file. */
export function spokenSize(compression: Exclude<Compression, "none">, narSize: number): number {
  if (compression === "bzip2") return spokenBzip2Size(narSize);
  const format: StoredFormat = FORMATS[compression];
  const heads = blockCount(format, narSize) * format.blockHeadBytes;
  return format.head(narSize).length + heads + narSize + format.tail(narSize, 0).length;
}

/** Speaks one NAR of a known size, piece by piece. The same NAR makes the same bytes. */
export class Speaker {
  readonly #format: StoredFormat;
  readonly #narSize: number;
  #taken = 0;
  #crc = 0;

  constructor(compression: StoredCompression, narSize: number) {
    this.#format = FORMATS[compression];
    this.#narSize = narSize;
  }

  /** The bytes before the first piece. */
  begin(): Bytes {
    const { head, hasEmptyBlock } = this.#format;
    const isEmpty = this.#narSize === 0 && hasEmptyBlock;
    const block = isEmpty ? this.#format.blockHead(0, { isFirst: true, isLast: true }) : [];
    return Uint8Array.of(...head(this.#narSize), ...block);
  }

  /**
   * The next piece of the NAR between the bytes of the format. Throws where the NAR is larger than
   * announced.
   */
  speak(piece: Uint8Array): readonly Uint8Array[] {
    const { blockBytes } = this.#format;
    if (this.#taken + piece.length > this.#narSize) throw this.#wrongSize("more");
    this.#crc = crc32(piece, this.#crc);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < piece.length;) {
      const inBlock = this.#taken % blockBytes;
      if (inBlock === 0) parts.push(Uint8Array.from(this.#blockHead()));
      const part = piece.subarray(at, at + blockBytes - inBlock);
      parts.push(part);
      at += part.length;
      this.#taken += part.length;
    }
    return parts;
  }

  /** The bytes behind the last piece. Throws where the NAR is smaller than announced. */
  end(): Bytes {
    if (this.#taken < this.#narSize) throw this.#wrongSize("fewer");
    return this.#format.tail(this.#narSize, this.#crc);
  }

  #blockHead(): readonly number[] {
    const { blockBytes, blockHead } = this.#format;
    const left = this.#narSize - this.#taken;
    const place = { isFirst: this.#taken === 0, isLast: left <= blockBytes };
    return blockHead(Math.min(left, blockBytes), place);
  }

  #wrongSize(than: "more" | "fewer"): Error {
    return new Error(`Cannot speak NAR: it has ${than} than ${this.#narSize} bytes`);
  }
}

function blockCount({ blockBytes, hasEmptyBlock }: StoredFormat, narSize: number): number {
  return Math.max(hasEmptyBlock ? 1 : 0, Math.ceil(narSize / blockBytes));
}
