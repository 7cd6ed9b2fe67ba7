import type { Downloads } from "../cache/download/downloads.ts";
import { observedFetcher } from "../cache/fetch/observed_fetcher.ts";
import { SinkFetcher, type SinkFetcherDeps } from "../cache/fetch/sink_fetcher.ts";
import type { NarForms } from "../cache/forms/nar_forms.ts";
import type { KeptNars } from "../cache/kept/kept_nars.ts";
import type { PassThroughDeps } from "../cache/pass_through/pass_through.ts";
import type { NarinfoServer } from "../cache/narinfo/serve_narinfo.ts";
import type { NegativeCache } from "../cache/narinfo/negative_cache.ts";
import { UnnamedNarServer } from "../cache/serve_unnamed_nar.ts";
import { MemberDownloads } from "../cache/serve_member_download.ts";
import { MemberNarServer } from "../cache/serve_member.ts";
import { NarServer, type NarServerDeps } from "../cache/serve_nar.ts";
import { narTimeouts } from "../cache/sources/nar_attempts.ts";
import type { NarName } from "../nix/nar_name.ts";
import { NO_OTHER_MEMBERS } from "../locks/work_leases.ts";
import { NO_TRACER } from "../telemetry/tracer.ts";
import type { Loops } from "../upstream/loops.ts";
import type { AppParts } from "./app_parts.ts";
import type { buildUpstreams } from "./build_upstreams.ts";
import { MemberSources } from "./member_sources.ts";

/** Objects that NARs share with the rest of the cache. */
export interface NarNeighbours {
  readonly upstreams: Pick<ReturnType<typeof buildUpstreams>, "pool" | "narClients" | "client">;
  readonly attempts: PassThroughDeps["attempts"];
  readonly transfers: PassThroughDeps["transfers"];
  readonly verifier: PassThroughDeps["verifier"];
  readonly watchers: NarServerDeps["watchers"];
  readonly downloads: Downloads;
  readonly kept: KeptNars;
  readonly forms: NarForms;
  readonly narinfos: Pick<NarinfoServer, "serve">;
  /** NAR names that no upstream has. */
  readonly absent: NegativeCache<NarName>;
  readonly loops: Pick<Loops, "isPassedOn">;
}

/** Wires the answers to NAR requests, of clients and of other members. */
export function buildNars(parts: AppParts, neighbours: NarNeighbours) {
  const { metadata, leases } = parts.stores;
  const { metrics, tracer = NO_TRACER } = parts.telemetry;
  const { attempts, transfers, verifier, watchers, downloads, kept, forms, narinfos } = neighbours;
  const timeouts = narTimeouts(parts.upstream.settings);
  const { candidates } = attempts;
  const { pool } = neighbours.upstreams;
  const sources = memberSources(parts, neighbours.upstreams);
  const isUpstream = (url: string) => sources.isUpstream(url);
  const sinks = (from: SinkFetcherDeps["narClients"]) => {
    const inner = new SinkFetcher({ narClients: from, ...timeouts });
    return observedFetcher(inner, { metrics, tracer, isUpstream });
  };
  const passThrough = {
    attempts: {
      ...attempts,
      candidates: { ...candidates, members: sources },
      // Each client takes the bytes at its own pace.
      logging: { ...attempts.logging, paces: undefined },
    },
    sinks: sinks(sources),
    ...{ transfers, verifier, tracer, isUpstream },
  };
  const { attempts: { candidates: withHolders } } = passThrough;
  const sizes = { candidates: withHolders, narClients: sources, ...timeouts };
  const here = new MemberNarServer({ metadata, kept, downloads, forms, reads: watchers.reads });
  return {
    nars: new NarServer({
      ...{ kept, forms, downloads, passThrough, watchers, formerNames: metadata },
      memberDownloads: leases && new MemberDownloads({
        ...{ members: sources, downloads, here, passThrough },
        sinks: (own) => sinks(sources.with(own)),
      }),
      async narinfoOf(storePathHash, requestId) {
        const { text } = await narinfos.serve(storePathHash, { requestId, isHead: true });
        return text === undefined ? undefined : await metadata.findNarinfo(storePathHash);
      },
      isUpstream: (url) => pool.order("nar").includes(url),
      unnamedNars: new UnnamedNarServer({
        ...{ documents: metadata, pool, absent: neighbours.absent },
        loops: neighbours.loops,
        // A member's file may be another one than the document's.
        sizes: { ...sizes, candidates },
        passThrough,
      }),
      sizes,
    }),
    members: leases ? here : undefined,
  };
}

/** Other members have the tokens of this one. */
function memberSources(
  { stores, upstream, identity }: AppParts,
  { narClients, client }: NarNeighbours["upstreams"],
): MemberSources {
  const { leases = NO_OTHER_MEMBERS, space: { owner: member } } = stores;
  const token = identity.tokens.find(({ role }) => role === "read");
  const [first] = upstream.settings;
  return new MemberSources({
    leases,
    upstreams: narClients,
    client,
    member,
    settings: {
      ...MEMBER_TIMEOUTS,
      idleTimeoutMs: Math.min(MEMBER_IDLE_MAX_MS, narTimeouts(upstream.settings).idleTimeoutMs / 2),
      userAgent: first?.userAgent ?? "larder",
      ...(token === undefined ? {} : { authorization: `Bearer ${token.secret}` }),
    },
    trace: upstream.trace,
  });
}

/**
 * A member is near. One that waits for its own upstream is silent, too: leaving it costs a request
 * to an upstream. Staying with one that hangs would stop the client.
 */
const MEMBER_IDLE_MAX_MS = 5_000;

/** A member answers at once, before its own upstream does. */
const MEMBER_TIMEOUTS = { dialTimeoutMs: 1_000, headerTimeoutMs: 3_000 };
