import type { Metrics } from "../../telemetry/metrics.ts";
import { textAnswer } from "../message/message.ts";
import type { Route } from "./router.ts";

/** Every instrument in the Prometheus text format. */
export function metricsRoute(metrics: Pick<Metrics, "snapshot">): Route {
  return {
    name: "/metrics",
    path: "/metrics",
    audience: "own-names",
    methods: {
      async GET({ head }) {
        // Its library takes 20 ms to load, for which no start needs to wait.
        const prometheus = await import("../../telemetry/prometheus.ts");
        const text = await prometheus.prometheusText(metrics.snapshot());
        const type = prometheus.PROMETHEUS_TYPE;
        return textAnswer(text, head, { status: 200, type, lifetime: "never" });
      },
    },
  };
}
