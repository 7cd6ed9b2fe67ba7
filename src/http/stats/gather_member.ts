import { isPresent } from "../../telemetry/recent_problems.ts";
import {
  type ProcessFacts,
  requestStats,
  type StatsSources,
  upstreamStats,
} from "./gather_stats.ts";
import { MEMBER_DOWNLOADS_MAX, type MemberStatus } from "./member_status.ts";
import { judgedProblems } from "./shown_state.ts";

/** The sources of a member's own status. */
export interface MemberFigureSources {
  readonly metrics: StatsSources["metrics"];
  readonly upstreams: StatsSources["upstreams"];
  readonly process: Omit<ProcessFacts, "publicKey">;
  readonly transfers: Pick<StatsSources["transfers"], "downloads" | "nameOf">;
  readonly problems: StatsSources["reports"]["problems"];
  readonly own: {
    readonly host: string;
    /** `--cache-advertise-url`. */
    readonly url: string | undefined;
    readonly isDraining: () => boolean;
  };
}

/** Collects this member's figures, from memory and the names of running downloads. */
export class MemberGatherer {
  readonly #sources: MemberFigureSources;
  #requestsBefore = 0;
  #beforeMs: number;

  constructor(sources: MemberFigureSources) {
    this.#sources = sources;
    this.#beforeMs = sources.process.startedAtMs;
  }

  /** The rate of requests is that since the last call. */
  async status(): Promise<MemberStatus> {
    const { process: { version, startedAtMs }, own, upstreams, problems } = this.#sources;
    const { host, url, isDraining } = own;
    const statuses = upstreams.pool.statuses();
    const nowMs = this.#sources.process.nowMs();
    const judged = judgedProblems(problems.list(), upstreamStats(upstreams), nowMs);
    const up = statuses.filter(({ isUp }) => isUp).length;
    return {
      ...{ host, version, url: url ?? null, started_at: new Date(startedAtMs).toISOString() },
      is_draining: isDraining(),
      ...this.#requests(),
      upstreams: { up, down: statuses.length - up },
      problems: judged.filter((problem) => isPresent(problem, nowMs)).length,
      downloads: await this.#downloads(),
    };
  }

  #requests() {
    const { metrics, process: { nowMs } } = this.#sources;
    const [narinfo, nar] = [requestStats(metrics, "narinfo"), requestStats(metrics, "nar")];
    const answered = narinfo.hits + narinfo.joined + nar.hits + nar.joined;
    const known = answered + narinfo.misses + narinfo.prefetched + nar.misses + nar.prefetched;
    const absent = narinfo.absent + nar.absent;
    const seconds = (nowMs() - this.#beforeMs) / 1_000;
    const came = known + absent - this.#requestsBefore;
    [this.#requestsBefore, this.#beforeMs] = [known + absent, nowMs()];
    return {
      requests_per_second: seconds > 0 ? Math.round(came / seconds * 10) / 10 : null,
      hit_ratio: known === 0 ? null : answered / known,
    };
  }

  async #downloads(): Promise<MemberStatus["downloads"]> {
    const { downloads, nameOf } = this.#sources.transfers;
    const { count } = downloads;
    const under_way = await Promise.all(
      downloads.progress(MEMBER_DOWNLOADS_MAX).map(async (one) => ({
        nar: one.narName,
        name: await nameOf(one.narName) ?? null,
        received_bytes: one.receivedBytes,
        file_bytes: one.fileSize ?? null,
      })),
    );
    return { count, under_way };
  }
}
