/** An expression as Grafana sends it, for all jobs and instances. */
export function asSent(expr: string, rateInterval: string): string {
  return expr.replaceAll("$__rate_interval", rateInterval)
    .replaceAll("$job", ".*").replaceAll("$instance", ".*");
}
