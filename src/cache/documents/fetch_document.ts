import { looksLikeObject } from "../../base/json_object.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { MemoryAllowance, MemoryShare } from "../../base/memory_allowance.ts";
import type { DocumentFacts, DocumentKeeper, DocumentRow } from "../../metadata/document_keeper.ts";
import type { ChangeWriter } from "../../metadata/metadata_store.ts";
import type { DocumentName } from "../../nix/document_name.ts";
import { parseNarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DocumentPool, OpenDocument } from "../../upstream/document_pool.ts";
import { collectDocument } from "./collect_document.ts";
import { memoryDocument, type SentDocument, streamedDocument } from "./document_answer.ts";
import { documentPieces, documentTag } from "./document_bytes.ts";
import { DOCUMENT_RULES, type DocumentRule } from "./document_rules.ts";

/** How long a client waits for the database; a locked one takes the document later. */
const KEEP_WAIT_MS = 500;

export interface FetchDocumentDeps {
  readonly pool: Pick<DocumentPool, "open">;
  readonly metadata: DocumentKeeper & ChangeWriter;
  readonly allowance: MemoryAllowance;
  /** The limit for all kept documents together; `Infinity`: none. */
  readonly totalBytesMax: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The upstreams' answer. */
export type FetchedDocument =
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
export async function fetchDocument(
  deps: FetchDocumentDeps,
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
      log.warn("document not usable", {
        path: name.path,
        upstream: document.upstream,
        error: messageOf(error),
        request_id: requestId,
      });
    }
  }
}

async function take(
  deps: FetchDocumentDeps,
  name: DocumentName,
  document: OpenDocument,
): Promise<FetchedDocument> {
  const rule = DOCUMENT_RULES[name.kind];
  const { encoding } = document;
  using held = new DisposableStack();
  const share = held.use(deps.allowance.share());
  const keptBytesMax = Math.min(rule.keptBytesMax, deps.totalBytesMax);
  // A document above the limit of all documents is still valid.
  const bytesMax = rule.mayBeLarger ? keptBytesMax : rule.keptBytesMax;
  const collected = await collectDocument(document, { rule, bytesMax, share, nowMs: deps.nowMs });
  if (collected.kind === "streamed") {
    held.use(document);
    const rest = held.move();
    const facts = { encoding, bodyBytes: document.bodyBytes, mayChange: rule.mayChange };
    const sent = streamedDocument(facts, collected.pieces, () => rest.dispose());
    return { kind: "streamed", document: sent };
  }
  document[Symbol.dispose]();
  const { bytes } = collected;
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
    mayChange: rule.mayChange || mayBeCut(rule, document),
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

/** True where a cut body looks like a whole one. */
function mayBeCut({ isJson }: DocumentRule, { framed, encoding }: OpenDocument): boolean {
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
  { metadata, totalBytesMax, nowMs, log }: FetchDocumentDeps,
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
        : { kind: "put-document", document, pieces, totalBytesMax, atMs },
    ]);
    // A late result serves the next request; until then the write holds its memory.
    const hold = share.hold();
    writing.catch(() => undefined).finally(() => hold[Symbol.dispose]());
    await clock.within(writing, KEEP_WAIT_MS);
    const row = await metadata.findDocument(path);
    return row?.tag === tag ? row : undefined;
  } catch (error) {
    log.error("document not kept", { path, error: messageOf(error) });
    return undefined;
  }
}
