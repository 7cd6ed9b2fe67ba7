import { MemoryAllowance } from "../base/memory_allowance.ts";
import { documentBytesMax } from "../cache/documents/document_bytes.ts";
import { DocumentServer } from "../cache/documents/serve_document.ts";
import type { NegativeCache } from "../cache/narinfo/negative_cache.ts";
import type { Touches } from "../cache/touches.ts";
import type { NarVerifier } from "../cache/verify/nar_verifier.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { HttpClient } from "../runtime/net.ts";
import { DocumentPool, type DocumentPoolDeps } from "../upstream/document_pool.ts";
import { HttpDocumentSource } from "../upstream/http/http_document_source.ts";
import { answerTimeoutOf } from "../upstream/http/http_client.ts";
import type { Loops } from "../upstream/loops.ts";
import { queuedDocumentSource } from "../upstream/queued_sources.ts";
import { tracedDocumentSource } from "../upstream/watched_sources.ts";
import type { AppParts } from "./app_parts.ts";

/** Memory of all documents in flight. */
const MEMORY_BYTES_MAX = 64 << 20;

export interface DocumentUsers {
  readonly client: HttpClient;
  readonly pool: DocumentPoolDeps["pool"];
  readonly decoder: Pick<NarVerifier, "decode">;
  readonly observe: DocumentPoolDeps["observe"];
  readonly waited: DocumentPoolDeps["waited"];
  readonly negative: NegativeCache<DocumentPath>;
  readonly touches: Touches;
  readonly loops: Pick<Loops, "isPassedOn">;
}

/** Wires the cache of listings, logs, realisations and debuginfo. */
export function buildDocuments(parts: AppParts, users: DocumentUsers): DocumentServer {
  const { client, pool, decoder, observe, waited, negative, touches, loops } = users;
  const { metadata, space } = parts.stores;
  const { log, tracer } = parts.telemetry;
  const sources = new Map(parts.upstream.settings.map((settings) => {
    const source = new HttpDocumentSource({ settings, client, trace: parts.upstream.trace });
    const traced = tracer ? tracedDocumentSource(source, tracer) : source;
    const limitMs = Math.max(settings.dialTimeoutMs, answerTimeoutOf(settings));
    return [settings.url, queuedDocumentSource(traced, { limitMs, log })];
  }));
  const fetching = {
    pool: new DocumentPool({ sources, pool, observe, waited }),
    metadata,
    decoder,
    allowance: new MemoryAllowance(MEMORY_BYTES_MAX),
    totalBytesMax: () => documentBytesMax(space.limit.bytes),
    nowMs: parts.nowMs,
    log,
  };
  return new DocumentServer({ fetching, negative, touches, loops });
}
