import type { DocumentPath } from "../nix/document_name.ts";
import type { UpstreamReading } from "./upstream.ts";
import type { Late } from "./upstream_queue.ts";

/** A document that an upstream began to send. Read `pieces` to its end, or cancel it. */
export interface DocumentBody {
  /** The Content-Encoding, as the upstream names it. */
  readonly encoding: string | undefined;
  /** Bytes of all of it, where the upstream says so. */
  readonly size: number | undefined;
  /** False where a cut body may look whole: nothing but the connection's end ended it. */
  readonly framed: boolean;
  /** Its bytes, once; throws when they stop coming. */
  readonly pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>;
  /** Gives the connection back at once, whether anything was read or not; `pieces` then throws. */
  cancel(): void;
}

export type DocumentAnswer =
  | { readonly kind: "found"; readonly body: DocumentBody }
  | Exclude<UpstreamReading, { kind: "found" }>;

/** A binary cache behind a queue of ours. */
export interface QueuedDocumentSource {
  readonly url: string;
  /** Never throws: what went wrong is in the answer. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer | Late>;
}

/** What a binary cache has beside narinfos and NARs. */
export interface DocumentSource {
  readonly url: string;
  /** Never throws: what went wrong is in the answer. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer>;
}
