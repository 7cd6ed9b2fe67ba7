import type { Facts } from "../../base/failure.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { NoAnswerReason } from "../../upstream/upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Demotions } from "./demotions.ts";
import type { Mismatch } from "../verify/check_nar.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";

export interface AttemptLogDeps {
  readonly demotions: Demotions;
  readonly pool: Pick<UpstreamPool, "note">;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export type SourceFacts = Facts & { readonly upstream: string };

/**
 * What came of asking upstreams for one NAR file, kept or not: operators read it in the log and
 * the metrics, and it decides who is asked next time.
 */
export class AttemptLog {
  readonly #deps: AttemptLogDeps;
  readonly #nar: NarName;
  readonly #requestId: string;
  readonly #brokeOff = new Set<string>();

  constructor(deps: AttemptLogDeps, nar: NarName, requestId: string) {
    this.#deps = deps;
    this.#nar = nar;
    this.#requestId = requestId;
  }

  /** For whatever else is said of `upstream`. */
  facts(upstream: string): SourceFacts {
    return { nar: this.#nar, upstream, request_id: this.#requestId };
  }

  /** `received`: bytes of the file that came before. */
  asking(upstream: string, received: number): void {
    const facts = this.facts(upstream);
    if (received === 0) this.#deps.log.info("downloading nar from upstream", facts);
    else this.#deps.log.info("nar download goes on", { ...facts, received });
  }

  answered(upstream: string, outcome: SourceOutcome): void {
    if (!isOurs(outcome)) this.#deps.pool.note(upstream, noAnswerReasonOf(outcome));
  }

  /** Its narinfo says that it has the file, and it has not. */
  lost(upstream: string): void {
    this.#deps.demotions.add(this.#nar, upstream, "missing");
    this.#deps.log.warn("upstream lost nar", this.facts(upstream));
  }

  /** A long transfer may break off often: the first time of an upstream is a warning. */
  brokeOff(upstream: string, told: { readonly detail: string; readonly received: number }): void {
    const level = this.#brokeOff.has(upstream) ? "debug" : "warn";
    this.#deps.log[level]("download broke off", { ...this.facts(upstream), ...told });
    this.#brokeOff.add(upstream);
  }

  /** Nobody brought the file: those that broke off are asked last next time. */
  givenUp(): void {
    const { demotions } = this.#deps;
    for (const upstream of this.#brokeOff) {
      if (demotions.get(this.#nar, upstream) !== "bad") {
        demotions.add(this.#nar, upstream, "missing");
      }
    }
  }

  /**
   * What came is not the file that was announced. Of several `contributors` it is the first that
   * is asked last next time, so that each has its turn.
   */
  wrong(upstream: string, mismatch: Mismatch, contributors: readonly string[]): void {
    const { demotions, metrics, log } = this.#deps;
    const { reason, message: detail } = mismatch;
    const from = contributors.join(" ") || upstream;
    demotions.add(this.#nar, contributors[0] ?? upstream, "bad");
    metrics.count("verification_failures_total", { reason });
    log.error("nar verification failed", { ...this.facts(upstream), from, detail, reason });
  }

  /** The file is right all the same: its hash says so. */
  surplus(upstream: string): void {
    this.#deps.metrics.count("verification_failures_total", { reason: "file_size" });
    this.#deps.log.warn("upstream sent more than the nar file", this.facts(upstream));
  }
}

/** True where what happened says nothing of the upstream. */
function isOurs(outcome: SourceOutcome): boolean {
  return outcome.type === "failed" &&
    ["room", "disk", "cancelled", "outrun"].includes(outcome.reason);
}

function noAnswerReasonOf(outcome: SourceOutcome): NoAnswerReason | undefined {
  if (outcome.type !== "failed") return undefined;
  return outcome.reason === "timeout" || outcome.reason === "unreachable"
    ? outcome.reason
    : undefined;
}
