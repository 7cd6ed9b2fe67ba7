import type { NarRecord, NarSource } from "../metadata/metadata_store.ts";
import { NotKept } from "./download/download.ts";
import type { Downloads } from "./download/downloads.ts";
import type { NarClient } from "./fetch/sink_fetcher.ts";
import type { Requester } from "./nar/requester.ts";
import type { NarAnswer } from "./nar/nar_answer.ts";
import { openPassThrough, type PassThroughDeps } from "./pass_through/pass_through.ts";
import { OwnCopy } from "./pass_through/own_copy.ts";
import type { MemberNarServer } from "./serve_member.ts";
import { type MemberNarSources, OWN_COPY_URL } from "./sources/nar_candidates.ts";

export interface MemberDownloadsDeps {
  readonly members: MemberNarSources;
  readonly downloads: Pick<Downloads, "join">;
  /** Answers from the files of this member. */
  readonly here: Pick<MemberNarServer, "open">;
  readonly passThrough: PassThroughDeps;
  /** Sinks like those of `passThrough`; `own` has the URL `OWN_COPY_URL`. */
  readonly sinks: (own: NarClient) => PassThroughDeps["sinks"];
}

/**
 * NARs that another member downloads. Where that one stops, or is late, this member makes its own
 * copy, which all its clients share; then come upstreams.
 */
export class MemberDownloads {
  readonly #deps: MemberDownloadsDeps;

  constructor(deps: MemberDownloadsDeps) {
    this.#deps = deps;
  }

  /** `undefined` where no other member downloads the file. */
  async open(nar: NarRecord, requester: Requester): Promise<NarAnswer | undefined> {
    const { members, passThrough, sinks } = this.#deps;
    const holder = await members.sourceOf(nar.name);
    if (holder === undefined) return undefined;
    const own = new OwnCopy(async (signal) => {
      // It stopped, or is late: its machine may be gone.
      await members.stopped(nar.name, holder);
      // It answered after all, or the client left.
      if (signal.aborted) return undefined;
      return await this.#openOwn(nar, requester);
    });
    const { attempts } = passThrough;
    const candidates = { ...attempts.candidates, members: downloadedBy(holder, members) };
    const remote = { ...passThrough, sinks: sinks(own), attempts: { ...attempts, candidates } };
    return await openPassThrough(remote, nar, requester);
  }

  /** An answer from this member, with a new download if this member has the lease. */
  async #openOwn(nar: NarRecord, { requestId, client }: Requester): Promise<NarAnswer | undefined> {
    const { downloads, here } = this.#deps;
    try {
      await downloads.join(nar, requestId).download.hasLease();
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
    }
    return await here.open(nar.name, requestId, client);
  }
}

/** The holder, then this member, then the member that took over from the holder. */
function downloadedBy(holder: NarSource, members: MemberNarSources): MemberNarSources {
  return {
    sourceOf: () => Promise.resolve(holder),
    stopped: (nar, stopped) => members.stopped(nar, stopped),
    async *after(nar) {
      yield { upstream: OWN_COPY_URL, location: nar };
      const next = await members.sourceOf(nar);
      if (next !== undefined && next.upstream !== holder.upstream) yield next;
    },
  };
}
