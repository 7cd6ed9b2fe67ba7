import type { ReportInvalid, Variable } from "./environment.ts";

/** True if the environment disables telemetry, whatever the options say. Loads no SDK. */
export function isSdkDisabled(variable: Variable, reportInvalid: ReportInvalid): boolean {
  const value = variable("OTEL_SDK_DISABLED")?.trim().toLowerCase() ?? "false";
  if (value !== "true" && value !== "false") reportInvalid("OTEL_SDK_DISABLED");
  return value === "true";
}
