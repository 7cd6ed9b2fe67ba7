import { clock } from "../runtime/current.ts";
import { type CounterName, COUNTERS } from "./instruments/counters.ts";
import { type GaugeName, GAUGES } from "./instruments/gauges.ts";
import { type HistogramName, HISTOGRAMS } from "./instruments/histograms.ts";
import type {
  Domain,
  Group,
  Instrument,
  Labels,
  LabelsOf,
  LabelValues,
} from "./instruments/instrument.ts";
import {
  type BackEnd,
  type OPERATION_OUTCOMES,
  type OperationOf,
  OPERATIONS,
} from "./instruments/operation_labels.ts";

interface MetricsOptions {
  /** Exported groups of instruments. Callers may feed the others all the same. */
  readonly groups?: readonly Group[];
  readonly domains?: Partial<Domains>;
}

/** All metrics, typed by the tables: a name or label value outside them does not compile. */
export class Metrics {
  readonly #counters = new Map<CounterName, Family<CounterMember>>();
  readonly #gauges = new Map<GaugeName, Family<GaugeMember>>();
  readonly #histograms = new Map<HistogramName, Family<HistogramMember>>();
  readonly #shown: readonly { snapshot(): Snapshot }[];

  constructor({ groups = [], domains: given }: MetricsOptions = {}) {
    const domains: Domains = { upstreams: [], ...given };
    const shown: { snapshot(): Snapshot }[] = [];
    const show = <F extends { snapshot(): Snapshot }>(row: Instrument, family: F): F => {
      if (row.when === undefined || groups.includes(row.when)) shown.push(family);
      return family;
    };
    for (const [name, row] of rowsOf(COUNTERS)) {
      const parts = { type: "counter", make: counterMember, domains } as const;
      this.#counters.set(name, show(row, new Family(name, row, parts)));
    }
    for (const [name, row] of rowsOf(GAUGES)) {
      const type = "type" in row ? row.type : "gauge";
      const parts = { type, make: gaugeMember, domains } as const;
      this.#gauges.set(name, show(row, new Family(name, row, parts)));
    }
    for (const [name, row] of rowsOf(HISTOGRAMS)) {
      const parts = { type: "histogram", make: histogramMember(row.buckets), domains } as const;
      this.#histograms.set(name, show(row, new Family(name, row, parts)));
    }
    this.#shown = shown;
  }

  /** The series of these labels. Keep it where counting is frequent. */
  series<Name extends CounterName>(name: Name, labels: LabelsOf<typeof COUNTERS[Name]>): Series {
    return required(this.#counters.get(name)).series(labels);
  }

  count<Name extends CounterName>(name: Name, labels: LabelsOf<typeof COUNTERS[Name]>): void {
    this.series(name, labels).count();
  }

  /** The counter's value since the start. */
  value<Name extends CounterName>(name: Name, labels: LabelsOf<typeof COUNTERS[Name]>): number {
    return required(this.#counters.get(name)).series(labels).value();
  }

  /** Sets the reader of a gauge, called at each scrape. */
  gauge<Name extends GaugeName>(
    name: Name,
    labels: LabelsOf<typeof GAUGES[Name]>,
    read: () => number,
  ): void {
    required(this.#gauges.get(name)).series(labels).readBy(read);
  }

  /** The series of these labels. Keep it where observations are frequent. */
  histogram<Name extends HistogramName>(
    name: Name,
    labels: LabelsOf<typeof HISTOGRAMS[Name]>,
  ): HistogramSeries {
    return required(this.#histograms.get(name)).series(labels);
  }

  /** Every exported instrument with its present values. */
  snapshot(): readonly Snapshot[] {
    return this.#shown.map((family) => family.snapshot());
  }
}

/** The constructor makes a family of every row. */
function required<F>(family: F | undefined): F {
  if (family === undefined) throw new Error("Cannot measure: no such instrument");
  return family;
}

function rowsOf<Table extends Readonly<Record<string, Instrument>>>(table: Table) {
  return Object.entries(table) as [keyof Table & string, Table[keyof Table]][];
}

/** One series of a counter. It is a plain number, which makes counting cheap. */
export interface Series {
  /** Adds one. */
  count(): void;
  /** Adds `amount`, which is not negative. */
  add(amount: number): void;
}

/** One series of a histogram. */
export interface HistogramSeries {
  observe(value: number): void;
}

type FamilyType = "counter" | "gauge" | "untyped" | "histogram";

export type Point =
  | { readonly labels: Labels; readonly value: number }
  | {
    readonly labels: Labels;
    /** Upper bounds. `counts` has one more entry, for values above all of them. */
    readonly bounds: readonly number[];
    readonly counts: readonly number[];
    readonly sum: number;
  };

/** An instrument with the present values of all its series. */
export interface Snapshot {
  readonly name: string;
  readonly help: string;
  readonly type: FamilyType;
  readonly points: readonly Point[];
}

/** The label values of each domain. */
type Domains = Readonly<Record<Domain, readonly string[]>>;

interface FamilySeries {
  readonly labels: Labels;
  point(): Point;
}

/** The series of one instrument, by their label values. */
class Family<One extends FamilySeries> {
  readonly name: string;
  readonly #row: Instrument;
  readonly #type: FamilyType;
  readonly #make: (labels: Labels) => One;
  readonly #domains: Domains;
  readonly #series = new Map<string, One>();

  constructor(
    name: string,
    row: Instrument,
    { type, make, domains }: {
      readonly type: FamilyType;
      readonly make: (labels: Labels) => One;
      readonly domains: Domains;
    },
  ) {
    this.name = row.plain ? name : `larder_${name}`;
    this.#row = row;
    this.#type = type;
    this.#make = make;
    this.#domains = domains;
    if (row.sparse) return;
    for (const labels of combinations(row.labels, domains)) this.#add(labels);
  }

  /** Throws for labels outside the table. */
  series(given: object): One {
    // The types of the tables prove it, but the compiler cannot follow.
    const labels = given as Labels;
    const found = this.#series.get(this.#keyOf(labels));
    if (found !== undefined) return found;
    if (this.#row.sparse && this.#isPossible(labels)) return this.#add(labels);
    throw new Error(`Cannot count ${this.name}: no such series`);
  }

  snapshot(): Snapshot {
    const points = [...this.#series.values()].map((one) => one.point());
    return { name: this.name, help: this.#row.help, type: this.#type, points };
  }

  #isPossible(labels: Labels): boolean {
    return Object.entries(this.#row.labels).every(([label, given]) => {
      const values = valuesOf(given, this.#domains);
      return values.length === 0 || values.includes(labels[label] ?? "");
    });
  }

  #add(labels: Labels): One {
    const one = this.#make(labels);
    this.#series.set(this.#keyOf(labels), one);
    return one;
  }

  #keyOf(labels: Labels): string {
    return Object.keys(this.#row.labels).map((label) => labels[label]).join("\n");
  }
}

/** A counter's value is readable without the objects of a scrape. */
type CounterMember = Series & FamilySeries & { value(): number };

function counterMember(labels: Labels): CounterMember {
  let value = 0;
  return {
    labels,
    point: () => ({ labels, value }),
    value: () => value,
    count: () => void value++,
    add: (amount) => void (value += amount),
  };
}

type GaugeMember = FamilySeries & { readBy(read: () => number): void };

function gaugeMember(labels: Labels): GaugeMember {
  let read = () => 0;
  return {
    labels,
    point: () => ({ labels, value: read() }),
    readBy: (by) => void (read = by),
  };
}

type HistogramMember = HistogramSeries & FamilySeries;

function histogramMember(bounds: readonly number[]): (labels: Labels) => HistogramMember {
  return (labels) => {
    // A fractional number in a variable is a new object at each change.
    const counts = new Float64Array(bounds.length + 1);
    const sum = new Float64Array(1);
    return {
      labels,
      point: () => ({ labels, bounds, counts: [...counts], sum: sum[0] ?? 0 }),
      observe(value) {
        let at = 0;
        while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++;
        counts[at] = (counts[at] ?? 0) + 1;
        sum[0] = (sum[0] ?? 0) + value;
      },
    };
  };
}

/** Every combination of label values; one empty combination if there are no labels. */
function combinations(
  labels: Readonly<Record<string, LabelValues>>,
  domains: Domains,
): readonly Labels[] {
  return Object.entries(labels).reduce<readonly Labels[]>(
    (rows, [label, given]) => {
      const values = valuesOf(given, domains);
      return rows.flatMap((row) => values.map((value) => ({ ...row, [label]: value })));
    },
    [{}],
  );
}

function valuesOf(given: LabelValues, domains: Domains): readonly string[] {
  return typeof given === "string" ? domains[given] : given;
}

type Outcome = typeof OPERATION_OUTCOMES[number];

interface OperationFacts {
  /** Its abort cancels the operation, unless a time limit fired it. */
  readonly signal?: AbortSignal | undefined;
  /** True for an error that is an answer, such as an absence. Default: none is. */
  readonly isAnswer?: (error: unknown) => boolean;
}

/** Counts and times the operations of one back end. */
export interface OperationMeter<Operation extends string> {
  /** Runs one operation. */
  run<Value>(
    operation: Operation,
    work: () => Promise<Value>,
    facts?: OperationFacts,
  ): Promise<Value>;
}

/** Counts nothing. */
export const NO_METER: OperationMeter<string> = { run: (_operation, work) => work() };

/** The meter of a back end, whose series exist from now on. */
export function operationMeter<Name extends BackEnd>(
  metrics: Metrics,
  backend: Name,
): OperationMeter<OperationOf<Name>> {
  return new SeriesMeter(metrics, backend);
}

interface OperationSeries {
  readonly count: (outcome: Outcome) => void;
  readonly durations: HistogramSeries;
}

class SeriesMeter implements OperationMeter<string> {
  readonly #series: ReadonlyMap<string, OperationSeries>;

  constructor(metrics: Metrics, backend: BackEnd) {
    this.#series = new Map(OPERATIONS[backend].map((operation) => {
      const labels = { backend, operation };
      const counted = (outcome: Outcome): Series =>
        metrics.series("backend_operations_total", { ...labels, outcome });
      const [ok, failed] = [counted("ok"), counted("failed")];
      return [operation, {
        // A series of cancelled ones begins with the first.
        count: (outcome) =>
          (outcome === "ok" ? ok : outcome === "failed" ? failed : counted(outcome)).count(),
        durations: metrics.histogram("backend_operation_duration_seconds", labels),
      }];
    }));
  }

  async run<Value>(
    operation: string,
    work: () => Promise<Value>,
    { signal, isAnswer = () => false }: OperationFacts = {},
  ): Promise<Value> {
    const startedAtMs = clock.nowMs();
    const end = (outcome: Outcome) => {
      const series = this.#series.get(operation);
      series?.count(outcome);
      // How long a client stays says nothing of the back end.
      if (outcome !== "cancelled") series?.durations.observe((clock.nowMs() - startedAtMs) / 1_000);
    };
    try {
      const value = await work();
      end("ok");
      return value;
    } catch (error) {
      end(isAnswer(error) ? "ok" : isCancelled(signal) ? "cancelled" : "failed");
      throw error;
    }
  }
}

function isCancelled(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true && signal.reason?.name !== "TimeoutError";
}
