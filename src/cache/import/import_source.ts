import type { Bytes } from "../../base/bytes.ts";
import type { ForeignPlace } from "./foreign_file.ts";
import type { PinRoot } from "../../metadata/metadata_store.ts";
import type { Narinfo } from "../../nix/narinfo.ts";

/** Place of an entry's NAR file. */
export type SourceNar =
  | ({ readonly kind: "file" } & ForeignPlace)
  | {
    readonly kind: "stream";
    /** Size of the whole file; `undefined` if unknown. */
    readonly fileSize: number | undefined;
    /** Rejects with a Failure where the file is missing or unreadable. */
    open(signal: AbortSignal): Promise<ReadableStream<Bytes>>;
  };

/** A store object in another cache. */
export interface SourceEntry {
  readonly narinfo: Narinfo;
  readonly usedAtMs: number;
  readonly nar: SourceNar;
  /** The text of the names by which clients of the other cache remember the NAR. */
  readonly formerNames?: string | undefined;
}

/** Something in another cache that is no usable entry. */
export interface BrokenEntry {
  /** The store path, or whatever else names it there. */
  readonly name: string;
  /** One line without a full stop. */
  readonly problem: string;
}

/** Another cache, of which everything comes over. */
export interface ImportSource extends AsyncDisposable {
  /** The count of entries; `undefined` where only reading them shows it. */
  readonly entryCount: number | undefined;
  /** The entries that matter most first: room may end before they do. */
  entries(signal: AbortSignal): AsyncIterable<SourceEntry | BrokenEntry>;
  pins(): readonly PinRoot[];
}
