import { Counter, Registry } from "prom-client";

interface CounterRow {
  readonly help: string;
  /** Every label with all the values that it can have. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
}

/** Every instrument; names without the `larder_` in front. */
export const COUNTERS = {
  nar_served_total: { help: "NAR files served", labels: {} },
  narinfo_served_total: { help: "Narinfo files served", labels: {} },
  cache_requests_total: {
    help: "Narinfo and NAR requests by how they were answered",
    labels: { kind: ["narinfo", "nar"], result: ["hit", "miss", "joined", "negative"] },
  },
  verification_failures_total: {
    help: "What an upstream sent and was refused, by what was wrong",
    labels: {
      reason: [
        "signature",
        "narinfo",
        "file_size",
        "file_hash",
        "nar_size",
        "nar_hash",
        "undecodable",
      ],
    },
  },
} as const satisfies Readonly<Record<string, CounterRow>>;

export type CounterName = keyof typeof COUNTERS;

export type LabelsOf<Name extends CounterName> = {
  readonly [Label in keyof typeof COUNTERS[Name]["labels"]]:
    typeof COUNTERS[Name]["labels"][Label] extends readonly (infer Value)[] ? Value : never;
};

/** Counts by the table alone: a name or a label value outside it does not compile. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<CounterName, Counter>();

  constructor() {
    for (const [name, { help, labels }] of Object.entries<CounterRow>(COUNTERS)) {
      const counter = new Counter({
        name: `larder_${name}`,
        help,
        labelNames: Object.keys(labels),
        registers: [this.#registry],
      });
      for (const combination of combinations(labels)) counter.inc(combination, 0);
      this.#counters.set(name as CounterName, counter);
    }
  }

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>): void {
    this.#counters.get(name)?.inc(labels as Record<string, string>);
  }

  /** All series in the Prometheus text format. */
  async text(): Promise<string> {
    return await this.#registry.metrics();
  }
}

/** Every combination of label values; one empty one where there are no labels. */
function combinations(labels: CounterRow["labels"]): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (rows, [label, values]) =>
      rows.flatMap((row) => values.map((value) => ({ ...row, [label]: value }))),
    [{}],
  );
}
