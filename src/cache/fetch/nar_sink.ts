import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { announcedFileSize, fileSizeLimit, hasKnownFileHash } from "../nar/nar_naming.ts";

/** What is known of a NAR file before any source has answered. */
export interface NarOrder {
  /** Exactly this many bytes are expected; anything else is refused, at the answer if it says. */
  readonly fileSize?: number;
  /** More than this is refused. */
  readonly fileSizeMax: number;
  /** A hash says what the bytes are: whoever has them can go on where another one broke off. */
  readonly anySource: boolean;
}

/** Where the next source is to begin. */
export interface ResumePoint {
  readonly offset: number;
  /** Only of the file that has this tag; another one is to be sent from its start. */
  readonly tag?: string;
}

/**
 * Where the bytes of one NAR file go, from one source or from several after each other. It hashes
 * them on the way. One source writes at a time.
 */
export interface NarSink extends Disposable {
  readonly order: NarOrder;
  /** Leading bytes of the file that are here. */
  readonly received: number;
  /** As it was ordered, else as the source of its first bytes announced it. */
  readonly fileSize: number | undefined;
  /** SHA-256 of what is here. */
  readonly digest: Uint8Array;
  /** True where the memory of written bytes may be used again once `write` is over. */
  readonly copies: boolean;
  /** What to ask `source` for. */
  resumeAt(source: NarSource): ResumePoint;
  /** The next bytes are those of `source`, which has answered with this. */
  begin(source: NarSource, answer: { readonly fileSize?: number; readonly tag?: string }): void;
  /** False where other bytes than these are known to stand at `position`. */
  has(bytes: Uint8Array, position: number): boolean;
  /**
   * Appends bytes; the next are read when it is over. Throws FetchError "disk" or "room" when the
   * sink cannot take them, and "differs" when they are not those that are here.
   */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void> | void;
  /** The source has come to its end, or has failed. */
  pause(): void;
}

/** What a narinfo tells of its file. */
export function narOrderOf(nar: NarRow): NarOrder {
  const fileSize = announcedFileSize(nar);
  return {
    ...(fileSize === undefined ? {} : { fileSize }),
    fileSizeMax: fileSize ?? fileSizeLimit(nar),
    anySource: hasKnownFileHash(nar),
  };
}
