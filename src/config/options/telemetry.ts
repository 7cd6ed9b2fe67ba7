import { boolean } from "../kinds/plain.ts";
import type { OptionTable } from "../option.ts";

/** What larder tells of itself, and to whom. */
export const TELEMETRY_OPTIONS = {
  "prometheus.enabled": {
    kind: boolean,
    default: false,
    help: "Answer /metrics, for Prometheus",
  },
} as const satisfies OptionTable;
