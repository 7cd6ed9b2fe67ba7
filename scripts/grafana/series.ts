/** A series of a panel, over the time of its picture. */
export interface Series {
  readonly name: string;
  /** Seconds since 1970, and the value then. */
  readonly points: readonly (readonly [atS: number, value: number])[];
}

/** A legend such as `{{kind}} {{result}}` with the values of the series' labels. */
export function nameOf(legend: string, labels: Readonly<Record<string, string>>): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? "");
}
