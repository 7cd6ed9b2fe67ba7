import { SYSTEM_NET } from "../../src/runtime/system_net.ts";
import { UpstreamReader } from "../../src/cache/import/binary_cache/binary_cache_source.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { createUpstreamClient } from "../../src/upstream/http/upstream_fetch.ts";
import {
  HttpNarinfoFetcher,
  HttpNarinfoSource,
} from "../../src/upstream/http/http_narinfo_source.ts";
import { HttpNarSource } from "../../src/upstream/http/http_nar_source.ts";

/** Reads the binary cache at a URL as an import does. */
export function httpCacheReader(url: string): UpstreamReader {
  const client = createUpstreamClient(SYSTEM_NET, []);
  const times = { dialTimeoutMs: 5_000, headerTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
  const settings = { url, ...times, userAgent: "larder-test" };
  const rules = { keys: new TrustedKeys([]), requireSignature: false };
  const fetcher = new HttpNarinfoFetcher({ settings, client, ...rules });
  return new UpstreamReader({
    narinfos: new HttpNarinfoSource({ settings, client, fetcher }),
    nars: new HttpNarSource({ settings, client }),
    idleTimeoutMs: times.idleTimeoutMs,
    nowMs: Date.now,
    close: () => client[Symbol.dispose](),
  });
}
