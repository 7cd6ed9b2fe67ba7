import type { Logger } from "../telemetry/logger.ts";
import type { NarinfoReading } from "./upstream.ts";

/** Absent narinfos that make an upstream without a nix-cache-info suspicious. */
const ABSENT_MAX = 20;

/** What is known of an upstream's root. */
interface Root {
  hasInfo: boolean | undefined;
  absent: number;
  /** False once a narinfo was there, and behind the warning. */
  isDoubtful: boolean;
}

/** Warns once of each upstream whose URL seems to lack a part of its path. */
export class EmptyRoots {
  readonly #log: Pick<Logger, "event">;
  readonly #roots = new Map<string, Root>();

  constructor(log: Pick<Logger, "event">) {
    this.#log = log;
  }

  /** Notes whether the upstream has a nix-cache-info. */
  described(upstream: string, hasInfo: boolean): void {
    const root = this.#of(upstream);
    root.hasInfo = hasInfo;
    this.#judge(upstream, root);
  }

  note(upstream: string, { kind }: NarinfoReading): void {
    const root = this.#of(upstream);
    if (kind === "found") root.isDoubtful = false;
    else if (kind === "absent") root.absent++;
    if (root.isDoubtful) this.#judge(upstream, root);
  }

  #judge(upstream: string, root: Root): void {
    if (!root.isDoubtful || root.hasInfo !== false || root.absent < ABSENT_MAX) return;
    root.isDoubtful = false;
    this.#log.event("upstream-empty", { upstream, absent: root.absent });
  }

  #of(upstream: string): Root {
    const known = this.#roots.get(upstream);
    if (known !== undefined) return known;
    const root = { hasInfo: undefined, absent: 0, isDoubtful: true };
    this.#roots.set(upstream, root);
    return root;
  }
}
