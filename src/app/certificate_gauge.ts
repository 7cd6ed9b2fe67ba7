import { X509Certificate } from "node:crypto";
import type { Metrics } from "../telemetry/metrics.ts";

/** Gauges the expiry of the certificate in use. Call it with each certificate, as PEM. */
export function certificateGauge(metrics: Pick<Metrics, "gauge">): (pem: string) => void {
  return (pem) => {
    const expirySeconds = expirySecondsOf(pem);
    if (expirySeconds === undefined) return;
    metrics.gauge("tls_certificate_expiry_timestamp_seconds", {}, () => expirySeconds);
  };
}

/** Expiry of the first certificate, the server's own. `undefined` if the time is unreadable. */
function expirySecondsOf(pem: string): number | undefined {
  try {
    const ms = Date.parse(new X509Certificate(pem).validTo);
    return Number.isNaN(ms) ? undefined : ms / 1_000;
  } catch {
    // TLS works all the same: another library reads the certificate for it.
    return undefined;
  }
}
