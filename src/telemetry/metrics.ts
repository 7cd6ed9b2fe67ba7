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

/** One series of a counter: a number, so that counting costs nothing. */
export interface Series {
  /** Counts one. */
  count(): void;
}

interface CountedSeries extends Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Counts by the table alone: a name or a label value outside it does not compile. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #series = new Map<CounterName, readonly CountedSeries[]>();

  constructor() {
    for (const [name, { help, labels }] of Object.entries<CounterRow>(COUNTERS)) {
      const series = combinations(labels).map(countedSeries);
      this.#series.set(name as CounterName, series);
      new Counter({
        name: `larder_${name}`,
        help,
        labelNames: Object.keys(labels),
        registers: [this.#registry],
        collect() {
          this.reset();
          for (const one of series) this.inc(one.labels, one.value);
        },
      });
    }
  }

  /** The series of these labels; take it once where it is counted often. */
  series<Name extends CounterName>(name: Name, labels: LabelsOf<Name>): Series {
    const wanted = Object.entries(labels as Readonly<Record<string, string>>);
    const found = this.#series.get(name)?.find((one) =>
      wanted.every(([label, value]) => one.labels[label] === value)
    );
    if (found === undefined) throw new Error(`Cannot count ${name}: no such series`);
    return found;
  }

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>): void {
    this.series(name, labels).count();
  }

  /** All series in the Prometheus text format. */
  async text(): Promise<string> {
    return await this.#registry.metrics();
  }
}

function countedSeries(labels: Readonly<Record<string, string>>): CountedSeries {
  let value = 0;
  return {
    labels,
    get value() {
      return value;
    },
    count: () => void value++,
  };
}

/** Every combination of label values; one empty one where there are no labels. */
function combinations(labels: CounterRow["labels"]): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (rows, [label, values]) =>
      rows.flatMap((row) => values.map((value) => ({ ...row, [label]: value }))),
    [{}],
  );
}
