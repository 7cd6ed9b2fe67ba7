import type { Bytes } from "../../base/bytes.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { announcedFileSize, fileSizeLimit, hasKnownFileHash } from "../nar/nar_naming.ts";

/** The facts of a NAR file before any source has answered. */
export interface NarOrder {
  /** The exact size; a response that announces another one is refused at once. */
  readonly fileSize?: number;
  /** A larger file is refused. */
  readonly fileSizeMax: number;
  /** A hash identifies the bytes, so that any source can send the rest. */
  readonly anySource: boolean;
}

/** The requested byte range, and the bytes that the client already has. */
export interface NarPart {
  readonly start: number;
  /** `undefined`: the file's end. */
  readonly end: number | undefined;
  /** The client's bytes up to `start`; the new bytes must be the same. */
  readonly sent?: {
    /** The offset of the client's first byte. */
    readonly from: number;
    at(position: number, length: number): Uint8Array;
  };
}

/** The point where the next source is to begin. */
export interface ResumePoint {
  readonly offset: number;
  /** Tag of the file that may continue; another file must begin at 0. */
  readonly tag?: string;
}

/**
 * The destination of one NAR file's bytes, from one source or several in turn. It hashes the bytes.
 * One source writes at a time.
 */
export interface NarSink extends Disposable {
  readonly order: NarOrder;
  /** The count of leading bytes that arrived. */
  readonly received: number;
  /** The order's size, else the one that the source of the first bytes announced. */
  readonly fileSize: number | undefined;
  /** SHA-256 of the bytes so far. */
  readonly digest: Uint8Array;
  /** True where the caller may reuse the memory of the bytes once `write` is over. */
  readonly copies: boolean;
  /** The point where `source` is to begin. */
  resumeAt(source: NarSource): ResumePoint;
  /** The next bytes are from `source`, whose response has these facts. */
  begin(source: NarSource, answer: { readonly fileSize?: number; readonly tag?: string }): void;
  /** False where other bytes are known at `position`. */
  has(bytes: Uint8Array, position: number): boolean;
  /**
   * Appends bytes; call it again when it is over. Throws FetchError "disk" or "room" when the sink
   * cannot take them, and "differs" when they contradict its bytes.
   */
  write(bytes: Bytes): Promise<void> | void;
  /** The source has ended or failed. */
  pause(): void;
}

/** The order for the NAR file of a narinfo. */
export function narOrderOf(nar: NarRow): NarOrder {
  const fileSize = announcedFileSize(nar);
  return {
    ...(fileSize === undefined ? {} : { fileSize }),
    fileSizeMax: fileSize ?? fileSizeLimit(nar),
    anySource: hasKnownFileHash(nar),
  };
}
