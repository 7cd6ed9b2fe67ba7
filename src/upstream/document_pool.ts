import { messageOf } from "../base/failure.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { DocumentAnswer, DocumentBody, QueuedDocumentSource } from "./document_source.ts";
import { noAnswerReasonOf, type UpstreamReading } from "./upstream.ts";
import type { AskOptions, UpstreamPool } from "./upstream_pool.ts";
import type { QueueTimeout } from "./upstream_queue.ts";

export interface DocumentPoolDeps {
  /** Sources of documents by the upstream's URL. */
  readonly sources: ReadonlyMap<string, QueuedDocumentSource>;
  /** Knows their health and the order of preference. */
  readonly pool: Pick<UpstreamPool, "order" | "isDown" | "note" | "probeIfDown">;
  /** Called with every answer, for the log. */
  readonly observe: (upstream: string, reading: UpstreamReading, requestId: string) => void;
}

/** A document in flight. Dispose of it when it is read, or not needed. */
export interface OpenDocument extends DocumentBody, Disposable {
  readonly upstream: string;
}

export type DocumentPoolAnswer =
  | { readonly kind: "found"; readonly document: OpenDocument }
  /** Every upstream said so. */
  | { readonly kind: "absent" }
  /** No upstream has it, and at least one could not tell. */
  | { readonly kind: "unknown" };

interface DocumentRequest {
  readonly upstream: string;
  readonly abort: AbortController;
  readonly answer: Promise<DocumentAnswer | QueueTimeout>;
}

/** Requests documents of all upstreams that are up, side by side. */
export class DocumentPool {
  readonly #deps: DocumentPoolDeps;

  constructor(deps: DocumentPoolDeps) {
    this.#deps = deps;
  }

  /** The document of the most preferred upstream that has it. */
  async open(
    path: DocumentPath,
    { requestId, except }: AskOptions,
  ): Promise<DocumentPoolAnswer> {
    const { pool, sources, observe } = this.#deps;
    const order = () => pool.order("document").filter((upstream) => !except?.has(upstream));
    await pool.probeIfDown(order(), "document");
    const requests = order()
      .filter((upstream) => !pool.isDown(upstream, "document"))
      .flatMap((upstream) => this.#ask(sources.get(upstream), path));
    let [found, failed] = [undefined as OpenDocument | undefined, requests.length === 0];
    for (const { upstream, abort, answer } of requests) {
      // An aborted request says nothing about the upstream.
      if (found !== undefined) {
        abort.abort();
        answer.then((late) => late.kind === "found" && late.body.cancel());
        continue;
      }
      const reading = await answer;
      if (reading.kind === "queue-timeout") {
        failed = true;
        continue;
      }
      pool.note(upstream, "document", noAnswerReasonOf(reading));
      observe(upstream, reading, requestId);
      if (reading.kind === "failed") failed = true;
      if (reading.kind !== "found") continue;
      const dispose = () => {
        reading.body.cancel();
        abort.abort();
      };
      found = { ...reading.body, upstream, [Symbol.dispose]: dispose };
    }
    if (found !== undefined) return { kind: "found", document: found };
    return { kind: failed ? "unknown" : "absent" };
  }

  #ask(source: QueuedDocumentSource | undefined, path: DocumentPath): readonly DocumentRequest[] {
    if (source === undefined) return [];
    const abort = new AbortController();
    const answer = source.openDocument(path, abort.signal)
      .catch((error): DocumentAnswer => (
        { kind: "failed", reason: "garbage", detail: messageOf(error) }
      ));
    return [{ upstream: source.url, abort, answer }];
  }
}
