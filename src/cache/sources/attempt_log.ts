import type { Facts } from "../../base/failure.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { UpstreamReading } from "../../upstream/upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { AskedUpstreams, EndAsking } from "../../upstream/asked_upstreams.ts";
import { hintFor } from "../../upstream/failure_hints.ts";
import { readStatus } from "../../upstream/read_narinfo.ts";
import { BUSY_STATUSES } from "../../upstream/upstream_queue.ts";
import type { PathRecord } from "../nar/store_path_names.ts";
import { type Demotions, type NarPaces, OWN_COPY_URL, type PacedNar } from "./nar_candidates.ts";
import type { Mismatch } from "../verify/check_nar.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";

export interface AttemptLogDeps {
  readonly demotions: Demotions;
  readonly pool: Pick<UpstreamPool, "noteNar" | "noteNarTime" | "busy" | "has">;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Remembers how each file came, or why it did not. Default: no record is kept. */
  readonly record?: Pick<PathRecord, "sent" | "narFailed" | "narNotStored">;
  /** Judges how fast files come. `undefined` where a client's own pace holds them back. */
  readonly paces?: Pick<NarPaces, "begin"> | undefined;
  /** Notes who is asked for which file. Default: nobody does. */
  readonly waits?: Pick<AskedUpstreams, "begin"> | undefined;
}

export type SourceFacts = Facts & { readonly upstream: string };

/** Why an attempt did not bring the file. */
export interface BreakFacts {
  readonly reason: string;
  /** HTTP status of a response that is an error. */
  readonly status?: number;
  readonly detail: string;
  readonly received: number;
}

/**
 * The results of the requests for one NAR file, in the log and the metrics. They also decide the
 * order of upstreams next time.
 */
export class AttemptLog {
  readonly #deps: AttemptLogDeps;
  readonly #nar: NarName;
  readonly #requestId: string;
  readonly #brokeOff = new Set<string>();
  /** The time of each request without an answer, by its upstream. */
  readonly #requestedAtMs = new Map<string, number>();
  /** The upstreams of them beside which larder requested another source. */
  #late = new Set<string>();
  /** The member whose answer is awaited. */
  #member: string | undefined;

  constructor(deps: AttemptLogDeps, nar: NarName, requestId: string) {
    this.#deps = deps;
    this.#nar = nar;
    this.#requestId = requestId;
  }

  /** The facts for other log lines about `upstream`. */
  facts(upstream: string): SourceFacts {
    return { nar: this.#nar, upstream, request_id: this.#requestId };
  }

  /** False for another member, and for this one's copy. */
  isUpstream(source: string): boolean {
    return this.#deps.pool.has(source);
  }

  /** A source is waited for, until the result ends that. This member's copy has its own. */
  waits(upstream: string): EndAsking | undefined {
    return upstream === OWN_COPY_URL ? undefined : this.#deps.waits?.begin(this.#nar, upstream);
  }

  /** `received`: bytes that arrived before. */
  asking(upstream: string, received: number): void {
    const facts = this.facts(upstream);
    const { pool, log } = this.#deps;
    // A source that has failed is no longer among them.
    this.#late = new Set(this.#requestedAtMs.keys());
    // This member asks an upstream for its copy.
    if (upstream === OWN_COPY_URL) return this.#noteLateMember();
    if (!pool.has(upstream)) {
      this.#member = upstream;
      return log.info("reading nar from another member", facts);
    }
    this.#noteLateMember();
    this.#requestedAtMs.set(upstream, clock.nowMs());
    if (received === 0) log.info("downloading nar from upstream", facts);
  }

  /** The source begins to send the file, or the rest of it. */
  begun(upstream: string, received: number): void {
    const { pool, log } = this.#deps;
    if (upstream === OWN_COPY_URL) {
      const facts = { nar: this.#nar, request_id: this.#requestId, received };
      log.info("another member does not send: waiting for this member's copy", facts);
    }
    const requestedAtMs = this.#requestedAtMs.get(upstream) ?? Infinity;
    this.#noteOutrun(upstream);
    if (!pool.has(upstream)) return;
    this.#deps.demotions.sent(upstream);
    // Its body may take minutes.
    pool.noteNar(upstream, { kind: "found" });
    pool.noteNarTime(upstream, clock.nowMs() - requestedAtMs);
    if (received > 0) log.info("nar download resumed", { ...this.facts(upstream), received });
  }

  /** How fast it comes is judged until the result is disposed of. */
  pace(upstream: string, target: PacedNar["target"]): Disposable | undefined {
    const { pool, paces } = this.#deps;
    return pool.has(upstream) ? paces?.begin({ nar: this.#nar, upstream, target }) : undefined;
  }

  /** A slow upstream is one that another source outran. The last one had less time. */
  #noteOutrun(winner: string): void {
    for (const upstream of this.#late) {
      if (upstream !== winner) this.#deps.pool.noteNarTime(upstream, Infinity);
    }
    this.#late = new Set();
    this.#requestedAtMs.clear();
  }

  /** The member may still answer, and win. Then the request to the upstream was in vain. */
  #noteLateMember(): void {
    if (this.#member === undefined) return;
    this.#deps.log.info("member is late: asking an upstream too", this.facts(this.#member));
    this.#memberRead("late");
  }

  #memberRead(result: "whole" | "late" | "failed"): void {
    this.#deps.metrics.count("member_reads_total", { result });
    this.#member = undefined;
  }

  answered(upstream: string, outcome: SourceOutcome): void {
    const { pool } = this.#deps;
    if (!isOurs(outcome)) {
      pool.noteNar(upstream, readingOf(outcome));
      if (upstream === this.#member) this.#memberRead(outcome.type === "end" ? "whole" : "failed");
    }
    if (upstream === this.#member) this.#member = undefined;
    const { status = 0, requests = 1 } = outcome;
    // The winner has ended it already, and a newer request may be in flight.
    if (!isOutrun(outcome)) {
      this.#requestedAtMs.delete(upstream);
      this.#late.delete(upstream);
    }
    if (outcome.type === "failed" && outcome.reason === "timeout") {
      pool.noteNarTime(upstream, Infinity);
    }
    // Before the first byte it is retried only where it is busy, or breaks connections.
    if (BUSY_STATUSES.has(status) || requests > 1) pool.busy(upstream);
  }

  /** A prefetch got no answer in time, and ends. */
  late(upstream: string): void {
    this.#deps.pool.noteNarTime(upstream, Infinity);
  }

  /** `contributors`: those whose bytes the stored file has. */
  stored(contributors: readonly string[]): void {
    this.#deps.record?.sent(this.#nar, contributors);
  }

  /** The upstream lacks the file that its narinfo announces. A member announces none. */
  lost(upstream: string): void {
    if (!this.#deps.pool.has(upstream)) {
      return this.#deps.log.debug("member does not have the nar", this.facts(upstream));
    }
    this.#deps.demotions.lost(this.#nar, upstream);
    this.#deps.record?.narFailed(this.#nar, { upstream, result: "absent" });
    this.#deps.log.event("upstream-lost-nar", this.facts(upstream));
  }

  /**
   * Only an upstream's first break is a warning: a long transfer may break often. Behind a member
   * there are other sources.
   */
  brokeOff(upstream: string, more: BreakFacts): void {
    const { reason: result, status } = more;
    const isUpstream = this.isUpstream(upstream);
    const failure = { upstream, result, ...status === undefined ? {} : { status } };
    if (isUpstream) this.#deps.record?.narFailed(this.#nar, failure);
    const level = isUpstream && !this.#brokeOff.has(upstream) ? "warn" : "debug";
    this.#deps.log.event("download-broke-off", { ...this.facts(upstream), ...more }, level);
    this.#brokeOff.add(upstream);
  }

  /**
   * No upstream brought the file: those that broke off come last next time. `isCut`: a client
   * has some of its bytes, and sees a broken transfer. `last` is of the last attempt; `undefined`
   * where that has a line already.
   */
  givenUp(isCut: boolean, last: BreakFacts & { readonly upstream: string } | undefined): void {
    const { demotions, record, log } = this.#deps;
    record?.narNotStored(this.#nar, { reason: "not_sent" });
    if (last !== undefined) {
      const { upstream, ...facts } = last;
      const kind = isCut ? "nar-given-up" : "nar-not-fetched";
      log.event(kind, { ...this.facts(upstream), ...facts, ...hintOf(facts) });
    }
    for (const upstream of this.#brokeOff) {
      if (demotions.get(this.#nar, upstream) !== "bad") {
        demotions.add(this.#nar, upstream, "missing");
      }
    }
  }

  /**
   * The file is not the announced one. It demotes the first of several `contributors`, so that each
   * has its turn.
   */
  wrong(upstream: string, mismatch: Mismatch, contributors: readonly string[]): void {
    const { demotions, metrics, pool, record, log } = this.#deps;
    const { reason, message: detail } = mismatch;
    const from = contributors.join(" ") || upstream;
    const first = contributors[0] ?? upstream;
    demotions.add(this.#nar, first, "bad");
    if (pool.has(first)) record?.narFailed(this.#nar, { upstream: first, result: "wrong" });
    metrics.count("verification_failures_total", { reason });
    log.event("nar-verification-failed", { ...this.facts(upstream), from, detail, reason });
  }

  /** The file is right all the same: its hash is verified. */
  surplus(upstream: string): void {
    this.#deps.metrics.count("verification_failures_total", { reason: "file_size" });
    this.#deps.log.event("upstream-sent-more", this.facts(upstream));
  }
}

/** The remedy for silence. Other reasons have their line, or none. */
function hintOf({ reason, detail }: Pick<BreakFacts, "reason" | "detail">): { hint?: string } {
  if (reason !== "timeout" && reason !== "stalled") return {};
  return { hint: hintFor({ reason: "timeout", detail }, false) };
}

function isOutrun(outcome: SourceOutcome): boolean {
  return outcome.type === "failed" && outcome.reason === "outrun";
}

/** True where the outcome says nothing about the upstream. */
function isOurs(outcome: SourceOutcome): boolean {
  return outcome.type === "failed" &&
    ["room", "disk", "cancelled", "outrun"].includes(outcome.reason);
}

/** A transfer that breaks began with the file. */
function readingOf(outcome: SourceOutcome): UpstreamReading {
  if (outcome.type === "absent") return { kind: "absent" };
  if (outcome.type === "end") return { kind: "found" };
  const { reason, detail, status } = outcome;
  if (reason !== "timeout" && reason !== "unreachable" && reason !== "status") {
    return { kind: "found" };
  }
  const isError = status !== undefined && readStatus(status) === "failed";
  return { kind: "failed", reason, detail, ...isError ? { status } : {} };
}
