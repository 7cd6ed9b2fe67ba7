import type { Domain, Instrument, Labels, LabelValues } from "./instruments/instrument.ts";

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

export type FamilyType = "counter" | "gauge" | "untyped" | "histogram";

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
export type Domains = Readonly<Record<Domain, readonly string[]>>;

interface FamilySeries {
  readonly labels: Labels;
  point(): Point;
}

/** The series of one instrument, by their label values. */
export class Family<One extends FamilySeries> {
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
export type CounterMember = Series & FamilySeries & { value(): number };

export function counterMember(labels: Labels): CounterMember {
  let value = 0;
  return {
    labels,
    point: () => ({ labels, value }),
    value: () => value,
    count: () => void value++,
    add: (amount) => void (value += amount),
  };
}

export type GaugeMember = FamilySeries & { readBy(read: () => number): void };

export function gaugeMember(labels: Labels): GaugeMember {
  let read = () => 0;
  return {
    labels,
    point: () => ({ labels, value: read() }),
    readBy: (by) => void (read = by),
  };
}

export type HistogramMember = HistogramSeries & FamilySeries;

export function histogramMember(bounds: readonly number[]): (labels: Labels) => HistogramMember {
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
