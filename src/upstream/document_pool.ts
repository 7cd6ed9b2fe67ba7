import { messageOf } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import {
  type DocumentAnswer,
  type DocumentBody,
  noAnswerReasonOf,
  type QueuedDocumentSource,
  type UpstreamReading,
} from "./upstream.ts";
import type { AskOptions, UpstreamPool } from "./upstream_pool.ts";
import type { QueueTimeout } from "./upstream_queue.ts";
import type { RivalWait } from "./pooled_upstream.ts";

export interface DocumentPoolDeps {
  /** Sources of documents by the upstream's URL. */
  readonly sources: ReadonlyMap<string, QueuedDocumentSource>;
  /** Knows their health and the order of preference. */
  readonly pool: Pick<
    UpstreamPool,
    "order" | "isDown" | "note" | "probeIfDown" | "documentPatienceMs" | "noteDocumentTime"
  >;
  /** Called with every answer, for the log. */
  readonly observe: (upstream: string, reading: UpstreamReading, requestId: string) => void;
  /** Called with the sender and each better upstream, and how long a client waited for it. */
  readonly waited: (upstream: string, path: string, wait: RivalWait) => void;
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
  /** Resolves to the time when it has the document; never, where it has not. */
  readonly foundAtMs: Promise<number>;
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
      const others = requests.filter((other) => other.answer !== answer);
      const reading = await this.#awaited({ path, upstream, answer }, others);
      if (reading === undefined) {
        abort.abort();
        answer.then((late) => late.kind === "found" && late.body.cancel());
        continue;
      }
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

  /** `undefined`: another upstream has the document, and this one had its time since then. */
  async #awaited(
    { path, upstream, answer }: Pick<DocumentRequest, "upstream" | "answer"> & {
      readonly path: DocumentPath;
    },
    others: readonly DocumentRequest[],
  ): Promise<DocumentAnswer | QueueTimeout | undefined> {
    const { pool, waited } = this.#deps;
    using limits = new DisposableStack();
    const late = Promise.withResolvers<undefined>();
    let sinceMs: number | undefined;
    let isOver = false;
    void Promise.race(others.map(({ foundAtMs }) => foundAtMs)).then((atMs) => {
      if (isOver) return;
      sinceMs = atMs;
      const leftMs = pool.documentPatienceMs(upstream) - (clock.nowMs() - atMs);
      limits.use(clock.countdown(Math.max(0, leftMs), () => late.resolve(undefined)));
    });
    const reading = await Promise.race([answer, late.promise]);
    isOver = true;
    const ms = Math.round(clock.nowMs() - (sinceMs ?? clock.nowMs()));
    waited(upstream, path, { ms, isLate: reading === undefined });
    return reading;
  }

  #ask(source: QueuedDocumentSource | undefined, path: DocumentPath): readonly DocumentRequest[] {
    if (source === undefined) return [];
    const abort = new AbortController();
    const answer = source.openDocument(path, abort.signal)
      .catch((error): DocumentAnswer => (
        { kind: "failed", reason: "garbage", detail: messageOf(error) }
      ));
    const askedAtMs = clock.nowMs();
    const found = Promise.withResolvers<number>();
    answer.then((reading) => {
      if (reading.kind === "queue-timeout" || abort.signal.aborted) return;
      const nowMs = clock.nowMs();
      if (noAnswerReasonOf(reading) === undefined) {
        this.#deps.pool.noteDocumentTime(source.url, nowMs - askedAtMs);
      }
      if (reading.kind === "found") found.resolve(nowMs);
    });
    return [{ upstream: source.url, abort, answer, foundAtMs: found.promise }];
  }
}
