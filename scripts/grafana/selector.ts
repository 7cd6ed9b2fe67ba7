/** The series of the chosen jobs and instances. */
export const OF = 'job=~"$job",instance=~"$instance"';

/** The per-second rate of a counter, in the interval that Grafana chooses. */
export function rate(metric: string, matchers = ""): string {
  return `rate(${metric}{${OF}${matchers && `,${matchers}`}}[$__rate_interval])`;
}

/** A quantile of a histogram, by one of its labels if given. */
export function quantile(part: number, metric: string, label = ""): string {
  const by = label === "" ? "le" : `le, ${label}`;
  return `histogram_quantile(${part}, sum by (${by}) (${rate(`${metric}_bucket`)}))`;
}
