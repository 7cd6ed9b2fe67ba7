/** Panels that need what a plain larder has not: why their expressions may have no result. */
export const MAY_BE_EMPTY: Readonly<Record<string, string>> = {
  "Certificate expires in": "needs --server-tls-cert",
  "Telemetry dropped": "needs --otel-enabled",
};

/** An expression as Grafana sends it, for all jobs and instances. */
export function asSent(expr: string, rateInterval: string): string {
  return expr.replaceAll("$__rate_interval", rateInterval)
    .replaceAll("$job", ".*").replaceAll("$instance", ".*");
}
