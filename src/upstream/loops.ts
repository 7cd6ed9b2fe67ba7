import { AsyncLocalStorage } from "node:async_hooks";
import type { MemberId } from "../base/member_id.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** The header of an answer by which another larder knows that its upstream is one. */
export const LARDER_HEADER = "larder";

/** A longer way between larders is a loop that one of them does not see. */
const WAY_LENGTH_MAX = 16;

const LARDER_REGEXP = /(?:^|,)\s*(?:HTTP\/)?[\d.]+\s+larder-([\w.-]{1,300})(?=\s|,|$)/gi;

export interface LoopsDeps {
  /** This member. */
  readonly member: MemberId;
  /** The URLs of the upstreams. */
  readonly upstreams: readonly string[];
  readonly metrics: Pick<Metrics, "count">;
  readonly log: Pick<Logger, "event">;
}

/**
 * The way of requests between larders, in their `Via` headers. A request that comes back to its
 * sender is absent there, so that larders may name each other as upstreams.
 */
export class Loops {
  readonly #deps: LoopsDeps;
  /** Names no host: upstreams see it. */
  readonly #id: string;
  /** The larders that sent the request of this async context, the first first. */
  readonly #way = new AsyncLocalStorage<readonly string[]>();
  /** Upstreams that have not shown yet that they are no larder. */
  readonly #larders: Set<string>;
  #isWarned = false;

  constructor(deps: LoopsDeps) {
    this.#deps = deps;
    this.#id = deps.member.slice(deps.member.lastIndexOf(".") + 1);
    this.#larders = new Set(deps.upstreams);
  }

  /** The headers of a request to an upstream. */
  headers(): Readonly<Record<string, string>> {
    const way = [...this.#way.getStore() ?? [], this.#id];
    return { via: way.map((id) => `1.1 larder-${id}`).join(", ") };
  }

  /** Notes whether an upstream is a larder. */
  described(upstream: string, isLarder: boolean): void {
    if (isLarder) this.#larders.add(upstream);
    else this.#larders.delete(upstream);
  }

  /** True for a request that began here. The first one is a warning. */
  hasComeBack(via: string): boolean {
    const way = wayIn(via);
    // A member's whole id also has its host and process.
    const isOwn = way.some((id) => id === this.#id || id.endsWith(`.${this.#id}`));
    if (!isOwn && way.length < WAY_LENGTH_MAX) return false;
    const { metrics, log, upstreams } = this.#deps;
    metrics.count("upstream_loops_total", {});
    if (!this.#isWarned) {
      const larders = upstreams.filter((url) => this.#larders.has(url));
      log.event("upstream-loop", {
        upstream: (larders.length === 0 ? upstreams : larders).join(" "),
      });
    }
    this.#isWarned = true;
    return true;
  }

  /** Runs a request that came with this `Via`: its requests to upstreams carry it, too. */
  run<Value>(via: string, request: () => Value): Value {
    const way = wayIn(via);
    return way.length === 0 ? request() : this.#way.run(way, request);
  }

  /**
   * True for the request of another larder while an upstream may be one. Its absences are its own:
   * the other larder may have sent it from there. And it may not wait for a request of ours: that
   * one may wait for it.
   */
  get isPassedOn(): boolean {
    return this.#larders.size > 0 && this.#way.getStore() !== undefined;
  }
}

function wayIn(via: string): readonly string[] {
  return [...via.matchAll(LARDER_REGEXP)].flatMap(([, id]) => id ?? []);
}

/**
 * Marks the request of one member to another. The other answers from its own files and sends no
 * request, so none goes in a circle.
 */
export const MEMBER_HEADER = "larder-member";
