/** Optional instruments, exported only with their feature. */
export type Group = "analytics" | "redis" | "otel";

/**
 * Label values from the configuration: upstream URLs without credentials. All of them are known at
 * the start.
 */
export type Domain = "upstreams";

/** All values of a label. */
export type LabelValues = readonly string[] | Domain;

/** The common part of all instruments; the key of a row is its name. */
export interface Instrument {
  /** One line, no full stop. Units are in the name. */
  readonly help: string;
  readonly labels: Readonly<Record<string, LabelValues>>;
  /** True if the name has no `larder_` prefix. */
  readonly plain?: true;
  readonly when?: Group;
  /**
   * True if few combinations of label values occur. Callers create the usual series at the start;
   * others begin with their first use.
   */
  readonly sparse?: true;
}

/** The labels of a row, with their allowed values. */
export type LabelsOf<Row extends Instrument> = {
  readonly [Label in keyof Row["labels"]]: Row["labels"][Label] extends readonly (infer Value)[]
    ? Value
    : string;
};

export type Labels = Readonly<Record<string, string>>;
