import type { ForeignSetting, ForeignTable } from "../sources/foreign.ts";
import { listOf } from "../kinds/list.ts";
import { boolean } from "../kinds/plain.ts";
import type { Kind, Names } from "../kinds/option.ts";

/** Any text, number or list: the value is never read. */
const anything: Kind<string> = { placeholder: "VALUE", parse: (text) => text, print: String };

/** A setting that users would miss: an error at start. */
function refused(help: string, kind: Kind<unknown> = anything): ForeignSetting {
  return { kind, help };
}

/** A setting that users cannot miss: a warning at start. */
function moot(help: string, kind: Kind<unknown> = anything, also: readonly Names[] = []) {
  return { kind, help, also, isMoot: true } as const;
}

const UPLOADS = "it is about uploads, and larder takes none";
const S3 = "it belongs to --cache-storage-s3-bucket, which larder has not";
const CHUNKS = "it is about chunks, and larder keeps whole NAR files";
const POOL = "it is about a database server, and larder opens an SQLite file";
const REDIS = "it is about Redis, and larder needs none";
const LOCKS = "it is about locks between servers, and larder uses those of SQLite";
const SHARING = "it is about downloads that servers share; larder's clients always share them";
const XZ = "larder decompresses xz by itself";
const NO_REDIS = "it uses the locks of SQLite; leave it out";

/** The settings of ncps without a counterpart in larder, under ncps's names. */
export const NCPS_ONLY: ForeignTable = {
  "cache.allow-put-verb": refused(
    "it takes no uploads; push to another cache, and give that one as --cache-upstream-url",
    boolean,
  ),
  "cache.require-trusted-signature": moot(UPLOADS, boolean),
  "cache.trusted-upload-key": moot(UPLOADS, listOf(anything), [
    { variable: "CACHE_TRUSTED_UPLOAD_KEYS", key: "cache.trusted-upload-keys" },
  ]),
  "cache.get-token": refused(
    "anybody may read; let a proxy ask for the token, and listen with --server-addr for it alone",
  ),
  "cache.storage.s3.bucket": refused(
    "it keeps NAR files in a directory; give --cache-storage-local",
  ),
  "cache.storage.s3.endpoint": moot(S3),
  "cache.storage.s3.region": moot(S3),
  "cache.storage.s3.access-key-id": moot(S3),
  "cache.storage.s3.secret-access-key": moot(S3),
  "cache.storage.s3.force-path-style": moot(S3, boolean),
  "cache.database.pool.max-open-conns": moot(POOL),
  "cache.database.pool.max-idle-conns": moot(POOL),
  "cache.cdc.enabled": refused("it keeps whole NAR files; leave it out", boolean),
  "cache.cdc.min": moot(CHUNKS),
  "cache.cdc.avg": moot(CHUNKS),
  "cache.cdc.max": moot(CHUNKS),
  "cache.cdc.lazy-chunking-enabled": moot(CHUNKS, boolean),
  "cache.cdc.background-workers": moot(CHUNKS),
  "cache.cdc.delete-delay": moot(CHUNKS),
  "cache.cdc.lazy-recovery-schedule": moot(CHUNKS),
  "cache.cdc.lazy-recovery-batch-size": moot(CHUNKS),
  "cache.cdc.lazy-cleanup-schedule": moot(CHUNKS),
  "cache.cdc.chunk-wait-timeout": moot(CHUNKS),
  "cache.redis.addrs": refused(NO_REDIS, listOf(anything)),
  "cache.redis.username": moot(REDIS),
  "cache.redis.password": moot(REDIS),
  "cache.redis.db": moot(REDIS),
  "cache.redis.use-tls": moot(REDIS, boolean),
  "cache.redis.pool-size": moot(REDIS),
  "cache.lock.backend": { ...refused(NO_REDIS), obeyed: ["local"] },
  "cache.lock.redis.key-prefix": moot(REDIS),
  "cache.lock.download-ttl": moot(LOCKS, anything, [{ key: "cache.lock.download-lock-ttl" }]),
  "cache.lock.lru-ttl": moot(LOCKS, anything, [{ key: "cache.lock.lru-lock-ttl" }]),
  "cache.lock.retry.max-attempts": moot(LOCKS),
  "cache.lock.retry.initial-delay": moot(LOCKS),
  "cache.lock.retry.max-delay": moot(LOCKS),
  "cache.lock.retry.jitter": moot(LOCKS, boolean),
  "cache.lock.allow-degraded-mode": moot(LOCKS, boolean),
  "cache.download.poll-timeout": moot(SHARING),
  "cache.inflight-staging.enabled": moot(SHARING, boolean),
  "cache.inflight-staging.retention": moot(SHARING),
  "cache.inflight-staging.part-size": moot(SHARING),
  "pprof.addr": refused("it has no profiler; --prometheus-enabled tells memory and CPU time"),
  "analytics.reporting-samples": refused("`larder analytics --show` prints the report", boolean),
  "log.console-writer-enabled": {
    ...refused("give --log-format pretty for people, or --log-format json", boolean),
    // larder never does what "off" asks for on a terminal.
    obeyed: [],
  },
  "log.console-writer-prefix": refused("its log lines take no prefix; leave it out"),
  "use-xz-binary": moot(XZ, boolean),
  "xz-binary-path": moot(XZ),
};
