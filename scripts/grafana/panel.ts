/** A panel of the dashboard, without its place. */
export interface Panel {
  readonly title: string;
  /** A sentence or two that a reader needs to judge the figure. */
  readonly description: string;
  readonly kind: "stat" | "timeseries" | "state-timeline";
  /** Grafana's name of the unit. */
  readonly unit: string;
  /** Width, of 24 columns. */
  readonly columns: number;
  readonly targets: readonly Target[];
  /** Upper end of the axis; the lower one is 0. */
  readonly max?: number;
  /** Colours from a value on; the first has none. Lines in a time series. */
  readonly thresholds?: readonly Threshold[];
  readonly isStacked?: true;
  /** Shown in place of missing figures: the feature that this larder lacks. */
  readonly ifEmpty?: string;
  /** The alert on the same figure, whose section of the troubleshooting page it links to. */
  readonly alert?: string;
}

export type Threshold = readonly [color: "green" | "yellow" | "red" | "blue", from: number | null];

export interface Target {
  readonly expr: string;
  /** Name in the legend, with `{{label}}` for a label's value. */
  readonly legend: string;
  /** True for a figure that the thresholds do not judge. */
  readonly isNeutral?: true;
  /** The value of now alone, for an expression over a long time. */
  readonly isInstant?: boolean;
}

/** Panels below one heading. */
export interface Section {
  readonly title: string;
  readonly panels: readonly Panel[];
}
