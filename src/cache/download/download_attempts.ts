import { type Facts, messageOf } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Silence } from "../../upstream/upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Demotions } from "./demotions.ts";
import type { Download } from "./download.ts";
import { announcedFileSize } from "../nar_naming.ts";
import { keepDownload, type KeepDownloadDeps } from "./keep_download.ts";
import type { KeepingTrouble } from "./keeping_trouble.ts";
import { Mismatch } from "./mismatch.ts";
import type { FetchEnd, FetchFailure, FetchOutcome } from "./nar_fetcher.ts";
import type { Transfer } from "./transfer.ts";

/**
 * An upstream that adds less than this before it breaks off is not asked again at once: one that
 * gives a byte at a time would be asked for ever.
 */
const GROWN_BYTES_MIN = 64 * 1024;

export interface DownloadAttemptsDeps extends KeepDownloadDeps {
  readonly demotions: Demotions;
  readonly pool: Pick<UpstreamPool, "note">;
  /** Told of what is not the upstreams' fault. */
  readonly keeping: KeepingTrouble;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface DownloadParts {
  readonly download: Download;
  readonly nar: NarRow;
  readonly transfer: Transfer;
  readonly requestId: string;
}

/** Why a download came to nothing; the reason is one of few. */
export interface DownloadFailure {
  readonly reason: FetchFailure | Mismatch["reason"] | "absent" | "broken";
  readonly detail: string;
}

/** "grown": it broke off, but added to the file. "stuck": it is of no use for now. */
export type AttemptResult = "kept" | "grown" | "stuck" | "over";

/** The attempts to bring one NAR file here, and what they have come to. */
export class DownloadAttempts {
  readonly #deps: DownloadAttemptsDeps;
  readonly #parts: DownloadParts;
  readonly #startedAtMs: number;
  /** Upstreams whose file is of no use for this download, by URL. */
  readonly #refused = new Set<string>();
  readonly #brokeOff = new Set<string>();
  #result: AttemptResult | undefined;
  #failure: DownloadFailure = { reason: "absent", detail: "no upstream has it" };
  #unkept: "room" | "disk" | undefined;
  #count = 0;
  #grownAt = performance.now();

  constructor(deps: DownloadAttemptsDeps, parts: DownloadParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#startedAtMs = deps.nowMs();
  }

  /** True when nothing more can be done, or need be. */
  get over(): boolean {
    return this.#result === "kept" || this.#result === "over";
  }

  /** True when there are bytes, which somebody may have by now. */
  get begun(): boolean {
    return this.#parts.transfer.received > 0;
  }

  get count(): number {
    return this.#count;
  }

  /** When an attempt added to the file last; by performance.now(). */
  get grownAt(): number {
    return this.#grownAt;
  }

  get failure(): DownloadFailure {
    return this.#failure;
  }

  /** Set when it is we who cannot take the file: there is no room for it, or the disk fails. */
  get unkept(): "room" | "disk" | undefined {
    return this.#unkept;
  }

  /** Asks `source`, unless it has shown to be of no use. */
  async next(source: NarSource): Promise<AttemptResult> {
    if (this.#refused.has(source.upstream)) return "stuck";
    const { transfer, nar, requestId } = this.#parts;
    const before = transfer.received;
    const facts = { nar: nar.name, upstream: source.upstream, request_id: requestId };
    if (before === 0) this.#deps.log.info("downloading nar from upstream", facts);
    else this.#deps.log.info("nar download goes on", { ...facts, received: before });
    this.#count++;
    const outcome = await transfer.from(source);
    if (!isOurs(outcome)) this.#deps.pool.note(source.upstream, silenceOf(outcome));
    const grown = transfer.received - before >= GROWN_BYTES_MIN;
    if (grown) this.#grownAt = performance.now();
    this.#result = await this.#read(outcome, grown, facts);
    return this.#result;
  }

  async #read(outcome: FetchOutcome, grown: boolean, facts: SourceFacts): Promise<AttemptResult> {
    switch (outcome.type) {
      case "absent":
        this.#refused.add(facts.upstream);
        this.#deps.demotions.add(this.#parts.nar.name, facts.upstream, "absent");
        this.#deps.log.warn("upstream lost nar", facts);
        return "stuck";
      case "failed":
        return this.#failed(outcome, grown, facts);
      case "end":
        return await this.#ended(outcome, grown, facts);
    }
  }

  #failed(
    { reason, detail }: Extract<FetchOutcome, { type: "failed" }>,
    grown: boolean,
    facts: SourceFacts,
  ): AttemptResult {
    this.#failure = { reason, detail };
    if (reason === "room" || reason === "disk" || reason === "cancelled") {
      if (reason !== "cancelled") this.#unkept = reason;
      if (reason === "room") this.#deps.log.warn("nar not kept", { ...facts, detail });
      else if (reason === "disk") this.#notKept(detail, facts);
      else this.#deps.log.error("download failed", { ...facts, detail });
      return "over";
    }
    if (reason === "size") this.#blame(new Mismatch("file_size", detail), facts, facts.upstream);
    else this.#logBreak(detail, facts);
    if (["timeout", "unreachable", "status"].includes(reason)) return "stuck";
    if (reason === "upstream") return grown ? "grown" : "stuck";
    this.#refused.add(facts.upstream);
    return "stuck";
  }

  async #ended(end: FetchEnd, grown: boolean, facts: SourceFacts): Promise<AttemptResult> {
    const { download, nar, transfer } = this.#parts;
    try {
      await keepDownload(this.#deps, download, nar, { transfer, end });
      const duration_ms = this.#deps.nowMs() - this.#startedAtMs;
      const file_size = end.fileSize;
      this.#deps.keeping.kept(file_size);
      if (end.surplus) this.#noteSurplus(facts);
      this.#deps.log.info("nar cached successfully", { ...facts, file_size, duration_ms });
      return "kept";
    } catch (error) {
      const detail = messageOf(error);
      this.#failure = { reason: error instanceof Mismatch ? error.reason : "broken", detail };
      const mayGoOn = end.maybeShort && error instanceof Mismatch &&
        download.state.state === "receiving";
      if (mayGoOn && grown) {
        this.#logBreak(`${detail}, and nothing said where it ends`, facts);
        return "grown";
      }
      if (error instanceof Mismatch) transfer.judged(error.reason);
      // Of several it is the first that is asked last next time, so that each has its turn.
      this.#blame(error, facts, transfer.contributors[0] ?? facts.upstream);
      this.#refused.add(facts.upstream);
      return mayGoOn ? "stuck" : "over";
    }
  }

  /** A long download may break off often: the first time of an upstream is a warning. */
  #logBreak(detail: string, facts: SourceFacts): void {
    const told = { ...facts, detail, received: this.#parts.transfer.received };
    if (this.#brokeOff.has(facts.upstream)) this.#deps.log.debug("download broke off", told);
    else this.#deps.log.warn("download broke off", told);
    this.#brokeOff.add(facts.upstream);
  }

  #blame(error: unknown, facts: SourceFacts, upstream: string): void {
    const { demotions, metrics, log } = this.#deps;
    const from = this.#parts.transfer.contributors.join(" ") || facts.upstream;
    const told = { ...facts, from, detail: messageOf(error) };
    if (error instanceof Mismatch) {
      demotions.add(this.#parts.nar.name, upstream, "bad");
      metrics.count("verification_failures_total", { reason: error.reason });
      log.error("nar verification failed", { ...told, reason: error.reason });
    } else this.#notKept(told.detail, facts);
  }

  /** The file is right all the same: its hash says so. */
  #noteSurplus(facts: SourceFacts): void {
    this.#deps.metrics.count("verification_failures_total", { reason: "file_size" });
    this.#deps.log.warn("upstream sent more than the nar file", facts);
  }

  #notKept(detail: string, facts: SourceFacts): void {
    const { nar, transfer } = this.#parts;
    const fileSize = announcedFileSize(nar) ?? transfer.received;
    this.#deps.keeping.failed(fileSize, { ...facts, detail });
  }
}

/** True where what happened says nothing of the upstream. */
function isOurs(outcome: FetchOutcome): boolean {
  return outcome.type === "failed" && ["room", "disk", "cancelled"].includes(outcome.reason);
}

function silenceOf(outcome: FetchOutcome): Silence | undefined {
  if (outcome.type !== "failed") return undefined;
  return outcome.reason === "timeout" || outcome.reason === "unreachable"
    ? outcome.reason
    : undefined;
}

type SourceFacts = Facts & { readonly upstream: string };
