import type { Corpus } from "./corpus.ts";
import type { Launcher, Server } from "./server.ts";
import type { Workplace } from "./workplace.ts";

/** What a figure of larder is held to. */
export type Target =
  /** At least so many times the figure of nginx proxy_cache. */
  | { readonly kind: "ratio"; readonly atLeast: number }
  /** At most so much more than that of nginx proxy_cache. */
  | { readonly kind: "behind"; readonly atMost: number }
  /** Less than this, whatever the others have. */
  | { readonly kind: "below"; readonly limit: number };

/** One row of the table. */
export interface Figure {
  readonly name: string;
  readonly unit: "requests/s" | "MB/s" | "ms" | "s" | "MB" | "%";
  readonly target: Target;
}

/** One run of one server; a value for each figure. Rounds are numbered from 0. */
export type Run = (server: Server, round: number) => Promise<readonly number[]>;

/** Everything a measure can use. */
export interface Bench {
  readonly workplace: Workplace;
  readonly corpus: Corpus;
  /** Those that are compared, running. */
  readonly servers: readonly Server[];
  /** How a further one of each is started. */
  readonly launchers: readonly Launcher[];
  /** larder with what it is measured for turned on. */
  readonly variants: Readonly<Record<"plain" | "metrics" | "traces", Launcher>>;
  readonly rounds: number;
  /** How long wrk loads a server in one round. */
  readonly seconds: number;
  readonly warmUp: "once" | number;
}

/** What yields one or more figures. */
export interface Measure {
  readonly figures: readonly Figure[];
  /** Makes the files, checks every server's answers, and warms up. */
  prepare(bench: Bench): Promise<Run>;
}
