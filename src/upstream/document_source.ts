import type { Bytes } from "../base/bytes.ts";
import type { Codec } from "../nix/content_encoding.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { UpstreamReading } from "./upstream.ts";
import type { QueueTimeout } from "./upstream_queue.ts";

/** The body of a document. Read `pieces` to its end, or cancel it. */
export interface DocumentBody {
  /** The Content-Encoding, in the names that clients know. An unknown one is as it came. */
  readonly encoding: string | undefined;
  /**
   * The encodings of the bytes as far as larder knows them, the last one outermost. Without a
   * Content-Encoding, that of the compressed file that the bytes begin as.
   */
  readonly codecs: readonly Codec[];
  /** Bytes of the whole body, where the upstream says so. */
  readonly bodyBytes: number | undefined;
  /** False where only the connection's end ends the body: a cut one may look whole. */
  readonly framed: boolean;
  /** Its bytes, once; throws when they stop coming. */
  readonly pieces: AsyncGenerator<Bytes>;
  /** Gives the connection back at once; `pieces` then throws. */
  cancel(): void;
}

export type DocumentAnswer =
  | { readonly kind: "found"; readonly body: DocumentBody }
  | Exclude<UpstreamReading, { kind: "found" }>;

/** A binary cache behind a queue of ours. */
export interface QueuedDocumentSource {
  readonly url: string;
  /** Never throws: errors are answers. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer | QueueTimeout>;
}

/** The documents of a binary cache: all but narinfos and NARs. */
export interface DocumentSource {
  readonly url: string;
  /** Never throws: errors are answers. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer>;
}
