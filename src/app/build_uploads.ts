import { MemoryAllowance } from "../base/memory_allowance.ts";
import type { InFlight } from "../cache/fetch/transfer_progress.ts";
import { documentBytesMax } from "../cache/documents/document_bytes.ts";
import { createSigner } from "../cache/narinfo/own_signature.ts";
import { DocumentUploads } from "../cache/upload/document_uploads.ts";
import { NarUploads } from "../cache/upload/nar_uploads.ts";
import { NarinfoUploads } from "../cache/upload/narinfo_uploads.ts";
import { expireStagedNars } from "../cache/upload/stage_nar.ts";
import { openForPush } from "../cache/upload/stored_entries.ts";
import { SignedPaths } from "../cache/upload/signed_paths.ts";
import { StoredView } from "../cache/upload/stored_view.ts";
import { UploadTrust } from "../cache/upload/upload_trust.ts";
import { nixCacheInfoRoute } from "../http/routes/fixed_answers.ts";
import type { Route } from "../http/routes/router.ts";
import { uploadDocumentRoutes } from "../http/routes/upload/upload_documents.ts";
import { uploadNarRoute } from "../http/routes/upload/upload_nar.ts";
import { uploadNarinfoRoute } from "../http/routes/upload/upload_narinfo.ts";
import { signedPathsMax } from "../metadata/metadata_store.ts";
import { NO_TRACER } from "../telemetry/tracer.ts";
import type { AppParts } from "./app_parts.ts";
import type { Cache } from "./build_app.ts";

/** Memory of all narinfos and documents that come in. */
const MEMORY_BYTES_MAX = 64 << 20;

interface BuiltUploads {
  /** The NARs that clients upload now. */
  readonly inFlight: InFlight;
  readonly routes: readonly Route[];
  /** Removes the NARs whose narinfo has not come in time. */
  expire(): Promise<void>;
}

/** Wires the routes below `/upload`. */
export function buildUploads(parts: AppParts, cache: Cache): BuiltUploads {
  const { stores, identity, telemetry: { metrics, log, tracer = NO_TRACER }, nowMs } = parts;
  const { metadata, nars, spool, space: { owner } } = stores;
  const { kept, downloads, forms, space, reads, touches, negative, absentDocuments } = cache;
  const { verifier } = cache;
  const signer = createSigner(identity.secretKey);
  const changed = () => void space.altered();
  const entries = { kept: openForPush(kept), reads, touches };
  const stored = new StoredView({ metadata, entries, forms, signer });
  const allowance = new MemoryAllowance(MEMORY_BYTES_MAX);
  const received = metrics.series("upload_bytes_total", {});
  const narUploads = new NarUploads({
    publishing: { metadata, nars, nowMs, owner },
    ...{ entries, space, verifier, folder: spool.path, outages: downloads.outages },
    telemetry: { received, tracer, log },
  });
  metrics.gauge("in_flight_uploads", {}, () => narUploads.running.count);
  const trust = uploadTrust(parts);
  const rows = { metadata, signer };
  const signedPaths = new SignedPaths({
    metadata,
    upstreams: comparedUpstreams(cache),
    countMax: () => signedPathsMax(parts.stores.space.limit.bytes),
  });
  const settings = { negative, trust, signedPaths, changed, nowMs, log };
  const narinfoUploads = new NarinfoUploads({ rows, entries, ...settings });
  const totalBytesMax = () => documentBytesMax(parts.stores.space.limit.bytes);
  const documentUploads = new DocumentUploads({
    ...{ metadata, allowance, decoder: verifier, totalBytesMax, nowMs },
    negative: absentDocuments,
  });
  const ifAllowed = <Uploads>(uploads: Uploads) =>
    parts.writes.uploads.allowed ? uploads : undefined;
  const deps = { stored, handling: { metrics, log, closed: trust.closed } };
  return {
    inFlight: narUploads.running,
    routes: [
      nixCacheInfoRoute(identity.priority, "/upload"),
      uploadNarinfoRoute({
        ...{ ...deps, uploads: ifAllowed(narinfoUploads) },
        decoding: { allowance, decoder: verifier },
      }),
      uploadNarRoute({ ...deps, uploads: ifAllowed(narUploads) }),
      ...uploadDocumentRoutes({ ...deps, uploads: ifAllowed(documentUploads) }),
    ],
    expire: () => {
      const { sweeper } = space;
      return expireStagedNars({ metadata, sweeper, reads, owner, changed, nowMs, log });
    },
  };
}

function comparedUpstreams({ narinfoFetches: narinfos, negative, pool }: Cache) {
  if (pool.isEmpty) return undefined;
  return { narinfos, negative, isAnyUp: () => pool.statuses().some(({ isUp }) => isUp) };
}

function uploadTrust({ writes: { uploads }, identity, upstream }: AppParts): UploadTrust {
  return new UploadTrust({
    uploadKeys: uploads.keys,
    upstreamKeys: upstream.trustedKeys,
    requireSignature: uploads.requireSignature,
    hasWriteToken: identity.tokens.some(({ role }) => role !== "read"),
  });
}
