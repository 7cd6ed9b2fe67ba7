import {
  type CounterMember,
  counterMember,
  type Domains,
  Family,
  type GaugeMember,
  gaugeMember,
  type HistogramMember,
  histogramMember,
  type HistogramSeries,
  type Series,
  type Snapshot,
} from "./families.ts";
import { type CounterName, COUNTERS } from "./instruments/counters.ts";
import { type GaugeName, GAUGES } from "./instruments/gauges.ts";
import { type HistogramName, HISTOGRAMS } from "./instruments/histograms.ts";
import type { Group, Instrument, LabelsOf } from "./instruments/instrument.ts";

export type { HistogramSeries, Series } from "./families.ts";

export interface MetricsOptions {
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
