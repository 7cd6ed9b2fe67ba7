/** A decoder of one zstd file. */
export interface ZstdDecoder {
  /** Takes bytes of one frame from the start of `bytes` and returns their count. */
  take(bytes: Uint8Array): number;
  /** True: decode before the next `take`. */
  readonly isFull: boolean;
  /** The output of the taken bytes, in small pieces: each until the next one. Throws for damage. */
  decode(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Frees its memory, also before the end of its output. */
  close(): Promise<void>;
}

export type OpenZstd = () => Promise<ZstdDecoder>;
