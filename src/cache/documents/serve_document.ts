import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { formatBytes } from "../../base/format_units.ts";
import { looksLikeObject } from "../../base/json_object.ts";
import type { MemoryAllowance, MemoryShare } from "../../base/memory_allowance.ts";
import { SingleFlight } from "../../base/single_flight.ts";
import type {
  ChangeWriter,
  DocumentFacts,
  DocumentKeeper,
  DocumentRow,
} from "../../metadata/metadata_store.ts";
import type { DocumentName, DocumentPath } from "../../nix/document_name.ts";
import { parseNarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DocumentPool, OpenDocument } from "../../upstream/document_pool.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { CacheResult } from "../nar/nar_answer.ts";
import type { NegativeCache } from "../narinfo/serve_narinfo.ts";
import type { Touches } from "../touches.ts";
import { decodeEncoded } from "../verify/decode_encoded.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { collectDocument } from "./collect_document.ts";
import {
  type DocumentServed,
  keptDocument,
  memoryDocument,
  type SentDocument,
  streamedDocument,
} from "./document_answer.ts";
import { documentPieces, documentTag } from "./document_bytes.ts";
import { DOCUMENT_RULES, type DocumentRule, UNCHANGED_FOR_MS } from "./document_rules.ts";

export interface DocumentServerDeps {
  readonly pool: Pick<DocumentPool, "open">;
  readonly metadata: DocumentKeeper & ChangeWriter;
  readonly allowance: MemoryAllowance;
  readonly decoder: Pick<NarVerifier, "decode">;
  /** The limit for all kept documents together; `Infinity`: none. */
  readonly totalBytesMax: () => number;
  readonly negative: NegativeCache<DocumentPath>;
  readonly touches: Pick<Touches, "document">;
  readonly loops: Pick<Loops, "isPassedOn">;
  readonly nowMs: () => number;
  readonly log: Logger;
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
    const { metadata, negative } = this.#deps;
    const { path } = name;
    const row = await metadata.findDocument(path);
    const kept = row === undefined ? undefined : await this.#kept(row);
    if (kept !== undefined && row !== undefined && !this.#isDue(row)) return hit(kept);
    if (negative.has(path)) return hit(kept);
    const { value, joined } = this.#deps.loops.isPassedOn
      ? { value: fetchDocument(this.#deps, name, requestId), joined: false }
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
    const { metadata } = this.#deps;
    // An unreadable database counts as one without the document.
    const row = await metadata.findDocument(name.path).catch(() => undefined);
    if (row !== undefined && !this.#isDue(row)) return { kind: "stored", row };
    return await this.#fetch(name, requestId);
  }

  async #fetch(name: DocumentName, requestId: string): Promise<FetchedDocument> {
    const { negative } = this.#deps;
    const { clearings } = negative;
    const fetched = await fetchDocument(this.#deps, name, requestId);
    if (fetched.kind === "absent") negative.add(name.path, clearings);
    return fetched;
  }

  #isDue({ mayChange, checkedAtMs }: DocumentRow): boolean {
    return mayChange && this.#deps.nowMs() - checkedAtMs > UNCHANGED_FOR_MS;
  }

  #kept(row: DocumentRow): Promise<SentDocument | undefined> {
    this.#deps.touches.document(row.path);
    return keptDocument(this.#deps.metadata, row);
  }
}

function hit(document: SentDocument | undefined): DocumentServed {
  return { cacheResult: "HIT", document };
}

/** How long a client waits for the database; a locked one takes the document later. */
const KEEP_WAIT_MS = 500;

/** How long the decoding of a document waits for the memory of others. */
const MEMORY_WAIT_MS = 5_000;

/** The upstreams' answer. */
type FetchedDocument =
  | { readonly kind: "kept"; readonly row: DocumentRow }
  /** Small, but keeping it failed: for any number of readers. */
  | { readonly kind: "held"; readonly document: SentDocument }
  /** Too large to keep, or too slow: for one reader. */
  | { readonly kind: "streamed"; readonly document: SentDocument }
  | { readonly kind: "absent" | "unknown" };

/**
 * Requests a document of the upstreams until one sends it whole and in the right shape. It is kept
 * before it is served.
 */
async function fetchDocument(
  deps: DocumentServerDeps,
  name: DocumentName,
  requestId: string,
): Promise<FetchedDocument> {
  const { pool, log } = deps;
  const except = new Set<string>();
  for (;;) {
    const answer = await pool.open(name.path, { requestId, except });
    if (answer.kind !== "found") return { kind: except.size > 0 ? "unknown" : answer.kind };
    const { document } = answer;
    try {
      return await take(deps, name, document);
    } catch (error) {
      document[Symbol.dispose]();
      except.add(document.upstream);
      log.event("document-not-usable", {
        path: name.path,
        upstream: document.upstream,
        error: messageOf(error),
        request_id: requestId,
      });
    }
  }
}

async function take(
  deps: DocumentServerDeps,
  name: DocumentName,
  document: OpenDocument,
): Promise<FetchedDocument> {
  const rule = DOCUMENT_RULES[name.kind];
  using held = new DisposableStack();
  const share = held.use(deps.allowance.share());
  const keptBytesMax = Math.min(rule.keptBytesMax, deps.totalBytesMax());
  // A document above the limit of all documents is still valid.
  const bytesMax = rule.mayBeLarger ? keptBytesMax : rule.keptBytesMax;
  const collected = await collectDocument(document, { rule, bytesMax, share, nowMs: deps.nowMs });
  if (collected.kind === "streamed") {
    held.use(document);
    const rest = held.move();
    const encoding = encodingOf(document);
    const facts = { encoding, bodyBytes: document.bodyBytes, mayChange: rule.mayChange };
    const sent = streamedDocument(facts, collected.pieces, () => rest.dispose());
    return { kind: "streamed", document: sent };
  }
  document[Symbol.dispose]();
  const { bytes, encoding } = await plainOf(deps, document, {
    ...{ bytes: collected.bytes, rule, share },
    bytesMax: rule.keptBytesMax,
  });
  if (rule.isJson && encoding === undefined && !looksLikeObject(bytes)) {
    throw new Failure("corrupt", "Cannot read document: it is no JSON object");
  }
  const facts: DocumentFacts = {
    path: name.path,
    upstream: document.upstream,
    type: rule.type,
    ...(encoding === undefined ? {} : { encoding }),
    tag: documentTag(bytes),
    bodyBytes: bytes.length,
    mayChange: rule.mayChange || mayBeCut(rule, { framed: document.framed, encoding }),
    ...archiveOf(name, bytes),
  };
  const pieces = documentPieces(bytes);
  const row = await keep(deps, facts, { pieces, share });
  if (row !== undefined) return { kind: "kept", row };
  if (pieces.length <= 1) return { kind: "held", document: memoryDocument(facts, bytes) };
  const rest = held.move();
  const sent = streamedDocument(
    facts,
    (async function* () {
      yield* pieces;
    })(),
    () => rest.dispose(),
  );
  return { kind: "streamed", document: sent };
}

interface EncodedBytes {
  readonly bytes: Bytes;
  readonly rule: DocumentRule;
  /** The largest decoded document. */
  readonly bytesMax: number;
  readonly share: MemoryShare;
}

interface PlainBytes {
  readonly bytes: Bytes;
  /** `undefined` for a document that was decoded. */
  readonly encoding: string | undefined;
}

/**
 * The decoded document. One that is too large for memory, or that larder cannot decode, keeps its
 * encoding. Throws a Failure "corrupt" when it is larger than its kind may be.
 */
async function plainOf(
  { decoder, log }: Pick<DocumentServerDeps, "decoder" | "log">,
  document: OpenDocument,
  { bytes, rule, bytesMax, share }: EncodedBytes,
): Promise<PlainBytes> {
  const { codecs, encoding, upstream } = document;
  if (codecs.length === 0) {
    if (encoding !== undefined) log.event("document-encoding-unknown", { upstream, encoding });
    return { bytes, encoding };
  }
  const encoded = { bytes, encoding: encodingOf(document) };
  if (!await share.takeWithin(bytesMax, MEMORY_WAIT_MS)) return encoded;
  const body = await decodeEncoded(decoder, bytes, { codecs, bytesMax, upstream })
    .catch((error) => {
      if (error instanceof Failure && error.kind === "overloaded") return undefined;
      throw error;
    });
  switch (body?.kind) {
    case "bytes":
      return { bytes: body.bytes, encoding: undefined };
    case "damaged":
      // A client may know better. Without a Content-Encoding it is what it is.
      return { bytes, encoding };
    case "too-large":
      if (rule.mayBeLarger) return encoded;
      throw new Failure("corrupt", `Cannot read document: it is over ${formatBytes(bytesMax)}`);
    case undefined:
      return encoded;
  }
}

/** The Content-Encoding of the bytes as they came. */
function encodingOf({ encoding, codecs }: OpenDocument): string | undefined {
  return encoding ?? (codecs.length > 0 ? codecs.join(", ") : undefined);
}

/** True where a cut body looks like a whole one. */
function mayBeCut(
  { isJson }: DocumentRule,
  { framed, encoding }: Pick<OpenDocument, "framed" | "encoding">,
): boolean {
  return !framed && (!isJson || encoding !== undefined);
}

/** The NAR that a debuginfo document names, if its location has the usual form. */
function archiveOf({ kind }: DocumentName, bytes: Uint8Array): Pick<DocumentFacts, "narName"> {
  if (kind !== "debuginfo") return {};
  try {
    const { archive } = JSON.parse(new TextDecoder().decode(bytes));
    const narName = parseNarName(/^\.\.\/nar\/([^/]+)$/.exec(String(archive))?.[1] ?? "");
    return narName === undefined ? {} : { narName };
  } catch {
    // The encoding is unknown to us.
    return {};
  }
}

interface HeldPieces {
  readonly pieces: readonly Uint8Array[];
  readonly share: MemoryShare;
}

/** `undefined` where the document could not be kept. */
async function keep(
  { metadata, totalBytesMax, nowMs, log }: DocumentServerDeps,
  document: DocumentFacts,
  { pieces, share }: HeldPieces,
): Promise<DocumentRow | undefined> {
  const { path, tag, upstream } = document;
  const atMs = nowMs();
  try {
    const before = await metadata.findDocument(path);
    const isSame = before?.tag === tag && before.upstream === upstream;
    const writing = metadata.apply([
      isSame
        ? { kind: "check-document", path, atMs }
        : { kind: "put-document", document, pieces, totalBytesMax: totalBytesMax(), atMs },
    ]);
    // A late result serves the next request; until then the write holds its memory.
    const hold = share.hold();
    writing.catch(() => undefined).finally(() => hold[Symbol.dispose]());
    await clock.within(writing, KEEP_WAIT_MS);
    const row = await metadata.findDocument(path);
    return row?.tag === tag ? row : undefined;
  } catch (error) {
    log.event("document-not-kept", { path, error: messageOf(error) });
    return undefined;
  }
}
