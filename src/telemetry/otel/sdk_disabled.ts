import type { Complain, Variable } from "./environment.ts";

/** Whether the environment wants no telemetry, whatever the options say. Loads no SDK. */
export function isSdkDisabled(variable: Variable, complain: Complain): boolean {
  const value = variable("OTEL_SDK_DISABLED")?.trim().toLowerCase() ?? "false";
  if (value !== "true" && value !== "false") complain("OTEL_SDK_DISABLED");
  return value === "true";
}
