import { lruOf } from "../base/lru.ts";
import { ownText } from "../base/own_text.ts";
import type { Stretch } from "../base/wait_notes.ts";
import { stemOf } from "../nix/nar_name.ts";
import { clock } from "../runtime/current.ts";

/** A stretch of time in which a request waited for an upstream. */
export interface UpstreamStretch extends Stretch {
  readonly upstream: string;
  /** True if that upstream did not have it, or nobody waited for its answer any more. */
  readonly isInVain: boolean;
}

/**
 * Ends what an upstream was asked for. `lost`: nobody waits for it any more. `empty`: it does not
 * have it.
 */
export type EndAsking = (how?: "lost" | "empty") => void;

/** A request to an upstream; it runs while `toMs` is Infinity. */
interface Asked {
  readonly upstream: string;
  readonly fromMs: number;
  toMs: number;
  isLost: boolean;
  isInVain: boolean;
}

/** Names of paths and files whose requests have ended: some 300 bytes each. */
const NAMES_MAX = 2_048;

/** An answer that is enough ends the wait for the others within this time. */
const LET_GO_WITHIN_MS = 10;

/** The newest requests for one of them. */
const ASKED_MAX = 16;

/**
 * When which upstream was asked for which narinfo or NAR file, in memory only. So each request of a
 * client learns whom it waited for, whoever began to ask: this client, another one, or a prefetch.
 */
export class AskedUpstreams {
  readonly #running = new Map<string, Asked[]>();
  readonly #ended = lruOf<string, readonly Asked[]>({ countMax: NAMES_MAX });

  /** An upstream is asked for a narinfo, by its store path hash, or for a NAR file, by its name. */
  begin(name: string, upstream: string): EndAsking {
    const key = stemOf(name);
    const asked: Asked = {
      upstream,
      fromMs: clock.nowMs(),
      toMs: Infinity,
      isLost: false,
      isInVain: false,
    };
    const running = this.#running.get(key);
    if (running === undefined) this.#running.set(ownText(key), [asked]);
    else running.push(asked);
    return (how) => {
      if (asked.toMs !== Infinity) return;
      asked.toMs = clock.nowMs();
      asked.isLost = how === "lost";
      asked.isInVain = how !== undefined;
      this.#end(key, asked);
    };
  }

  /**
   * Whom a request for `name` waited for from a moment to another, the last first. Each moment has
   * one upstream: the one whose answer ended the wait, and before it was asked the one before.
   */
  between(name: string, fromMs: number, toMs: number): readonly UpstreamStretch[] {
    const key = stemOf(name);
    const all = [...this.#ended.peek(key) ?? [], ...this.#running.get(key) ?? []]
      .filter((one) => one.fromMs <= toMs && (one.toMs > fromMs || one.fromMs >= fromMs));
    const waits: UpstreamStretch[] = [];
    let atMs = toMs;
    while (atMs > fromMs) {
      const now = all.filter((one) => one.fromMs < atMs && one.toMs >= atMs).sort(likelier)[0];
      const before = now ?? latest(all.filter((one) => one.toMs < atMs));
      // What larder did first, it did to ask that upstream; and what it did last, with its answer.
      const whom = before ?? waits.at(-1) ?? latest(all);
      if (whom === undefined) return waits;
      const { upstream, isInVain } = whom;
      const untilMs = Math.max(fromMs, (now ? now.fromMs : before?.toMs) ?? fromMs);
      waits.push({ upstream, isInVain, fromMs: untilMs, toMs: atMs });
      atMs = untilMs;
    }
    return waits;
  }

  /** The upstreams that are asked for `name` now, or send it. */
  now(name: string): readonly string[] {
    const running = this.#running.get(stemOf(name)) ?? [];
    return [...new Set(running.map(({ upstream }) => upstream))];
  }

  /** When the last request for `name` ended. Infinity: one runs, or larder knows of none. */
  endOf(name: string): number {
    const key = stemOf(name);
    const ended = this.#running.has(key) ? [] : this.#ended.peek(key) ?? [];
    return ended.length === 0 ? Infinity : Math.max(...ended.map(({ toMs }) => toMs));
  }

  #end(key: string, asked: Asked): void {
    const running = this.#running.get(key) ?? [];
    const others = running.filter((one) => one !== asked);
    if (others.length === 0) this.#running.delete(key);
    else this.#running.set(key, others);
    const ended = [...this.#ended.peek(key) ?? [], asked].slice(-ASKED_MAX);
    this.#ended.set(ownText(key), ended);
  }
}

/** Of those asked at one moment: not the one that lost, then the first. */
function likelier(one: Asked, other: Asked): number {
  return Number(one.isLost) - Number(other.isLost) || one.fromMs - other.fromMs;
}

/** The one that ended last: that answer was waited for. */
function latest(all: readonly Asked[]): Asked | undefined {
  const endOf = ({ toMs, isLost }: Asked) => isLost ? toMs - LET_GO_WITHIN_MS : toMs;
  return all.toSorted((one, other) => endOf(other) - endOf(one))[0];
}
