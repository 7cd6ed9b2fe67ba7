import type { ForeignSetting, ForeignTable } from "../sources/foreign.ts";
import { boolean } from "../kinds/plain.ts";
import type { Kind, Names } from "../kinds/option.ts";

/** Any text, number or list: the value is never read. */
const anything: Kind<string> = { placeholder: "VALUE", parse: (text) => text, print: String };

/** A setting that users would miss: an error at start. */
function unsupported(help: string, kind: Kind<unknown> = anything): ForeignSetting {
  return { kind, help };
}

/** A setting that users cannot miss: a warning at start. */
function ignored(help: string, kind: Kind<unknown> = anything, also: readonly Names[] = []) {
  return { kind, help, also, isIgnored: true } as const;
}

const CHUNKS = "it is about chunks, and larder keeps whole NAR files";
const POOL = "larder chooses the number of its connections to PostgreSQL";
const REDIS = "larder uses one connection to Redis";
const SHARING = "it is about downloads that servers share; larder's clients always share them";
const XZ = "larder decompresses xz by itself";

/** The settings of ncps without a counterpart in larder, under ncps's names. */
export const NCPS_ONLY: ForeignTable = {
  "cache.database.pool.max-open-conns": ignored(POOL),
  "cache.database.pool.max-idle-conns": ignored(POOL),
  "cache.cdc.enabled": unsupported("it keeps whole NAR files; leave it out", boolean),
  "cache.cdc.min": ignored(CHUNKS),
  "cache.cdc.avg": ignored(CHUNKS),
  "cache.cdc.max": ignored(CHUNKS),
  "cache.cdc.lazy-chunking-enabled": ignored(CHUNKS, boolean),
  "cache.cdc.background-workers": ignored(CHUNKS),
  "cache.cdc.delete-delay": ignored(CHUNKS),
  "cache.cdc.lazy-recovery-schedule": ignored(CHUNKS),
  "cache.cdc.lazy-recovery-batch-size": ignored(CHUNKS),
  "cache.cdc.lazy-cleanup-schedule": ignored(CHUNKS),
  "cache.cdc.chunk-wait-timeout": ignored(CHUNKS),
  "cache.redis.pool-size": ignored(REDIS),
  "cache.lock.backend": {
    ...unsupported("give --cache-redis-addrs for locks in Redis; leave it out"),
    obeyed: ["local", "redis"],
  },
  "cache.download.poll-timeout": ignored(SHARING),
  "cache.inflight-staging.enabled": ignored(SHARING, boolean),
  "cache.inflight-staging.retention": ignored(SHARING),
  "cache.inflight-staging.part-size": ignored(SHARING),
  "pprof.addr": unsupported("it has no profiler; --prometheus-enabled tells memory and CPU time"),
  "analytics.reporting-samples": unsupported(
    "`larder analytics --show` prints the report",
    boolean,
  ),
  "log.console-writer-enabled": {
    ...unsupported("give --log-format pretty for people, or --log-format json", boolean),
    // larder never obeys "off" on a terminal.
    obeyed: [],
  },
  "log.console-writer-prefix": unsupported("its log lines take no prefix; leave it out"),
  "use-xz-binary": ignored(XZ, boolean),
  "xz-binary-path": ignored(XZ),
};
