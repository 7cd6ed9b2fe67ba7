// Apart from the rest of the environment, which needs the SDK: a start without it loads only this.

/** A variable's value; `undefined` if unset or empty. */
export type Variable = (name: string) => string | undefined;

/** Called with each variable that has an invalid value, and thus its default. */
export type ReportInvalid = (variable: string) => void;

/** True if the environment disables telemetry, whatever the options say. Loads no SDK. */
export function isSdkDisabled(variable: Variable, reportInvalid: ReportInvalid): boolean {
  const value = variable("OTEL_SDK_DISABLED")?.trim().toLowerCase() ?? "false";
  if (value !== "true" && value !== "false") reportInvalid("OTEL_SDK_DISABLED");
  return value === "true";
}
