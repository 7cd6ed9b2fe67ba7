/** Instruments that are there only where what they measure is in use. */
export type Group = "analytics" | "redis" | "otel";

/**
 * Label values that depend on the configuration: the upstreams' URLs, without credentials. Each
 * is closed all the same, since all values are known at the start.
 */
export type Domain = "upstreams";

/** Every value that a label can have. */
export type LabelValues = readonly string[] | Domain;

/** What all instruments have in common; the key of a row is its name. */
export interface Instrument {
  /** One line, no full stop. Units are in the name. */
  readonly help: string;
  readonly labels: Readonly<Record<string, LabelValues>>;
  /** Set where `larder_` does not stand in front of the name. */
  readonly plain?: true;
  readonly when?: Group;
  /**
   * Set where not every combination of label values can happen, or hardly any does: whoever counts
   * asks for the usual ones at the start, and what is asked for later begins then.
   */
  readonly sparse?: true;
}

/** The labels of a row, with the values that the table allows. */
export type LabelsOf<Row extends Instrument> = {
  readonly [Label in keyof Row["labels"]]: Row["labels"][Label] extends readonly (infer Value)[]
    ? Value
    : string;
};

export type Labels = Readonly<Record<string, string>>;
