import type { Corpus } from "./corpus.ts";
import type { Launcher, Server } from "./server.ts";
import type { Workplace } from "./workplace.ts";

/** The target of a figure of larder. */
export type Target =
  /** A minimal multiple of nginx proxy_cache's figure. */
  | { readonly kind: "ratio"; readonly atLeast: number }
  /** A maximal difference to nginx proxy_cache's figure. */
  | { readonly kind: "behind"; readonly atMost: number }
  /** An absolute limit. */
  | { readonly kind: "below"; readonly limit: number };

/** One row of the table. */
export interface Figure {
  readonly name: string;
  readonly unit: "requests/s" | "MB/s" | "ms" | "s" | "MB" | "%";
  readonly target: Target;
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
  /** larder with telemetry on or off. */
  readonly variants: Readonly<Record<"plain" | "metrics" | "traces", Launcher>>;
  readonly rounds: number;
  /** Time of wrk's load on a server in one round. */
  readonly seconds: number;
  readonly warmUp: "once" | number;
}

/** A measurement of one or more figures. */
export interface Measure {
  readonly figures: readonly Figure[];
  /** Makes the files, checks every server's answers, and warms up. */
  prepare(bench: Bench): Promise<Run>;
}
