import { SingleFlight } from "../../base/single_flight.ts";
import type { DocumentRow } from "../../metadata/document_keeper.ts";
import type { DocumentName, DocumentPath } from "../../nix/document_name.ts";
import type { NegativeCache } from "../narinfo/negative_cache.ts";
import type { CacheResult } from "../nar/nar_answer.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { Touches } from "../touches.ts";
import { type DocumentServed, keptDocument, type SentDocument } from "./document_answer.ts";
import { UNCHANGED_FOR_MS } from "./document_rules.ts";
import { fetchDocument, type FetchDocumentDeps, type FetchedDocument } from "./fetch_document.ts";

export interface DocumentServerDeps {
  readonly fetching: FetchDocumentDeps;
  readonly negative: NegativeCache<DocumentPath>;
  readonly touches: Pick<Touches, "document">;
  readonly loops: Pick<Loops, "isPassedOn">;
}

/** `stored`: another request had it stored while this one read the row. */
type SharedDocument = FetchedDocument | { readonly kind: "stored"; readonly row: DocumentRow };

/** Serves documents from the cache, from remembered absences, or from upstreams. */
export class DocumentServer {
  readonly #deps: DocumentServerDeps;
  readonly #fetching = new SingleFlight<DocumentPath, SharedDocument>();

  constructor(deps: DocumentServerDeps) {
    this.#deps = deps;
  }

  async serve(name: DocumentName, requestId: string): Promise<DocumentServed> {
    const { fetching: { metadata }, negative } = this.#deps;
    const { path } = name;
    const row = await metadata.findDocument(path);
    const kept = row === undefined ? undefined : await this.#kept(row);
    if (kept !== undefined && row !== undefined && !this.#isDue(row)) return hit(kept);
    if (negative.has(path)) return hit(kept);
    const { value, joined } = this.#deps.loops.isPassedOn
      ? { value: fetchDocument(this.#deps.fetching, name, requestId), joined: false }
      : this.#fetching.run(path, () => this.#fetchUnlessStored(name, requestId));
    let cacheResult: CacheResult = joined ? "JOINED" : "MISS";
    let fetched: SharedDocument = await value;
    // A pass-through has one reader: the first client.
    if (fetched.kind === "streamed" && joined) {
      fetched = await this.#fetch(name, requestId);
      cacheResult = "MISS";
    }
    switch (fetched.kind) {
      case "stored":
        return { cacheResult: joined ? "JOINED" : "HIT", document: await this.#kept(fetched.row) };
      case "kept":
        return { cacheResult, document: await this.#kept(fetched.row) };
      case "held":
      case "streamed":
        return { cacheResult, document: fetched.document };
      case "absent":
      case "unknown":
        // An old answer of an upstream is better than none.
        return kept === undefined ? { cacheResult, document: undefined } : hit(kept);
    }
  }

  /** The row that a request read may be older than the end of the fetch before. */
  async #fetchUnlessStored(name: DocumentName, requestId: string): Promise<SharedDocument> {
    const { metadata } = this.#deps.fetching;
    // An unreadable database counts as one without the document.
    const row = await metadata.findDocument(name.path).catch(() => undefined);
    if (row !== undefined && !this.#isDue(row)) return { kind: "stored", row };
    return await this.#fetch(name, requestId);
  }

  async #fetch(name: DocumentName, requestId: string): Promise<FetchedDocument> {
    const { fetching, negative } = this.#deps;
    const { clearings } = negative;
    const fetched = await fetchDocument(fetching, name, requestId);
    if (fetched.kind === "absent") negative.add(name.path, clearings);
    return fetched;
  }

  #isDue({ mayChange, checkedAtMs }: DocumentRow): boolean {
    return mayChange && this.#deps.fetching.nowMs() - checkedAtMs > UNCHANGED_FOR_MS;
  }

  #kept(row: DocumentRow): Promise<SentDocument | undefined> {
    this.#deps.touches.document(row.path);
    return keptDocument(this.#deps.fetching.metadata, row);
  }
}

function hit(document: SentDocument | undefined): DocumentServed {
  return { cacheResult: "HIT", document };
}
