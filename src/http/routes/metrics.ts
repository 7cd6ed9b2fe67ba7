import { PROMETHEUS_TYPE, prometheusText } from "../../telemetry/prometheus.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** Every instrument in the Prometheus text format. */
export function metricsRoute(metrics: Pick<Metrics, "snapshot">): Route {
  const parts = { status: 200, type: PROMETHEUS_TYPE, lifetime: "never" } as const;
  return {
    name: "/metrics",
    path: "/metrics",
    audience: "own-names",
    methods: {
      GET: async ({ head }) => textAnswer(await prometheusText(metrics.snapshot()), head, parts),
    },
  };
}
