import { lruOf } from "../base/lru.ts";
import type { MemberId } from "../base/member_id.ts";
import type { NarClient } from "../cache/fetch/sink_fetcher.ts";
import { type MemberNarSources, OWN_COPY_URL } from "../cache/sources/nar_candidates.ts";
import type { NarHolder, WorkLeases } from "../locks/work_leases.ts";
import type { NarSource } from "../metadata/metadata_store.ts";
import { type NarName, parseNarName } from "../nix/nar_name.ts";
import type { HttpClient } from "../runtime/net.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import {
  type HttpUpstreamSettings,
  NO_UPSTREAM_TRACE,
  type UpstreamTrace,
} from "../upstream/http/upstream_fetch.ts";
import { MEMBER_HEADER } from "../upstream/loops.ts";
import { type NarBodySource, NoAnswer } from "../upstream/upstream.ts";

/** Members come and go, but few at a time. */
const MEMBERS_MAX = 100;

/** The folder of NARs in a larder's URLs. */
const FOLDER = "nar/";

/** A source of NARs and their sizes. */
type Source = NarClient & Pick<NarBodySource, "statNar">;

export interface MemberSourcesDeps {
  readonly leases: Pick<WorkLeases, "holderOf" | "stopped">;
  readonly upstreams: ReadonlyMap<string, NarBodySource>;
  readonly client: HttpClient;
  /** Settings of requests to members, without a URL. */
  readonly settings: Omit<HttpUpstreamSettings, "url">;
  /** This member. */
  readonly member: MemberId;
  readonly trace?: UpstreamTrace | undefined;
}

/** The sources of NARs: upstreams, and members that download them now. */
export class MemberSources implements MemberNarSources {
  readonly #deps: MemberSourcesDeps;
  readonly #members = lruOf<string, Source>({ countMax: MEMBERS_MAX });

  constructor(deps: MemberSourcesDeps) {
    this.#deps = deps;
  }

  isUpstream(url: string): boolean {
    return this.#deps.upstreams.has(url);
  }

  /** The upstream or the member there. */
  get(url: string): Source | undefined {
    return this.#deps.upstreams.get(url) ?? this.#members.get(url);
  }

  async sourceOf(nar: NarName): Promise<NarSource | undefined> {
    const holder = await this.#deps.leases.holderOf(nar);
    if (holder === undefined) return undefined;
    const { url } = holder;
    if (!this.#members.has(url)) this.#members.set(url, this.#memberAt(holder));
    return { upstream: url, location: FOLDER + nar };
  }

  /** Frees the lock of a stopped member. If that member goes on, it goes on without the lock. */
  async stopped(nar: NarName, { upstream: url }: NarSource): Promise<void> {
    await this.#deps.leases.stopped(nar, { url });
  }

  /** The same sources, and `own` as this member's copy. */
  with(own: NarClient): { get(url: string): NarClient | undefined } {
    return { get: (url) => url === OWN_COPY_URL ? own : this.get(url) };
  }

  #memberAt(holder: NarHolder): Source {
    const { settings, client, member, trace = NO_UPSTREAM_TRACE, leases } = this.#deps;
    const source = new HttpNarSource({
      settings: { ...settings, url: holder.url },
      client,
      trace: { ...trace, headers: () => ({ ...trace.headers(), [MEMBER_HEADER]: member }) },
    });
    const stopped = async (location: string) => {
      const nar = parseNarName(location.slice(FOLDER.length));
      if (nar !== undefined) await leases.stopped(nar, holder);
    };
    return {
      idleTimeoutMs: settings.idleTimeoutMs,
      isTakenByHead: true,
      async statNar(location, signal) {
        const found = await source.statNar(location, signal);
        // An upstream may know the size that this member does not know yet.
        return found?.fileSize === undefined ? undefined : found;
      },
      async openNar(location, request) {
        try {
          const body = await source.openNar(location, { ...request, isFinal: true });
          if (body === undefined) await stopped(location);
          return body;
        } catch (error) {
          if (error instanceof NoAnswer && error.reason === "unreachable") await stopped(location);
          throw error;
        }
      },
    };
  }
}
