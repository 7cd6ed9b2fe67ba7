import type { Corpus } from "./corpus.ts";
import { type Launcher, PROXY, type Server } from "./server.ts";
import type { Workplace } from "./workplace.ts";

/** The target of a figure of larder. */
export type Target =
  /** Minimal multiples of other servers' figures, by their names. Absent servers set none. */
  | { readonly kind: "ratio"; readonly atLeast: Readonly<Record<string, number>> }
  /** A maximal difference to nginx proxy_cache's figure. */
  | { readonly kind: "behind"; readonly atMost: number }
  /** An absolute limit. */
  | { readonly kind: "below"; readonly limit: number }
  /** None. */
  | { readonly kind: "none" };

/** One row of the table. */
export interface Figure {
  readonly name: string;
  readonly unit: "requests/s" | "MB/s" | "µs" | "ms" | "s" | "MB" | "%";
  readonly target: Target;
  /** Names of figures that this one is made of. They are printed if it misses its target. */
  readonly parts?: readonly string[];
}

/** A minimal multiple of nginx proxy_cache's figure. */
export function ofProxy(atLeast: number): Target {
  return { kind: "ratio", atLeast: { [PROXY]: atLeast } };
}

/** The processor time of `name`'s server for one unit of its work. */
export function cpuFigure(name: string, unit: "µs" | "ms"): Figure {
  return { name: `${name}: CPU each`, unit, target: { kind: "none" } };
}

/** One run of one server; returns a value for each figure. Rounds are numbered from 0. */
export type Run = (server: Server, round: number) => Promise<readonly number[]>;

/** The environment of a measure. */
export interface Bench {
  readonly workplace: Workplace;
  readonly corpus: Corpus;
  /** The running servers. */
  readonly servers: readonly Server[];
  /** Launchers for further processes of each. */
  readonly launchers: readonly Launcher[];
  /** larder with telemetry on or off, or behind an nginx that sends its files. */
  readonly variants: Readonly<Record<"plain" | "metrics" | "traces" | "behindNginx", Launcher>>;
  readonly rounds: number;
  /** Time of wrk's load on a server in one round. */
  readonly seconds: number;
  readonly warmUp: "once" | number;
}

/** A measurement of one or more figures. */
export interface Measure {
  readonly figures: readonly Figure[];
  /** Set if it launches processes itself: in the first set alone, or in each. */
  readonly launches?: "first set" | "each set";
  /** Makes the files, checks every server's answers, and warms up. */
  prepare(bench: Bench): Promise<Run>;
}
