import { trace, TraceFlags } from "@opentelemetry/api";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { ReportInvalid, Variable } from "./sdk_switch.ts";

export interface Service {
  readonly version: string;
  /** Distinguishes this process from others. */
  readonly instanceId: string;
}

const METRICS_EVERY_MS = 60_000;

/** `setTimeout` fires at once for a longer time. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Interval of metric exports, in ms. */
export function metricsEveryMs(variable: Variable, reportInvalid: ReportInvalid): number {
  const given = variable("OTEL_METRIC_EXPORT_INTERVAL") ?? String(METRICS_EVERY_MS);
  const everyMs = numberIn(given);
  if (everyMs >= 1 && everyMs <= TIMER_MAX_MS) return everyMs;
  reportInvalid("OTEL_METRIC_EXPORT_INTERVAL");
  return METRICS_EVERY_MS;
}

/** NaN for anything but a number. */
function numberIn(text: string): number {
  return text.trim() === "" ? NaN : Number(text);
}

/**
 * The resource: `OTEL_SERVICE_NAME` overrides `OTEL_RESOURCE_ATTRIBUTES`, which overrides the
 * defaults.
 */
export function resourceOf(
  variable: Variable,
  { version, instanceId }: Service,
  reportInvalid: ReportInvalid,
): Resource {
  const name = variable("OTEL_SERVICE_NAME");
  const given = attributesIn(variable("OTEL_RESOURCE_ATTRIBUTES") ?? "");
  if (given === undefined) reportInvalid("OTEL_RESOURCE_ATTRIBUTES");
  return resourceFromAttributes({
    "service.name": "larder",
    "service.version": version,
    "service.instance.id": instanceId,
    ...given,
    ...(name === undefined ? {} : { "service.name": name }),
  });
}

const PAIR_REGEXP = /^\s*([^=\s][^=]*?)\s*=\s*(.*?)\s*$/s;

/** Parses `key=value,…`, percent-encoded. The specification drops all if one pair is malformed. */
function attributesIn(text: string): Readonly<Record<string, string>> | undefined {
  const attributes: Record<string, string> = {};
  for (const pair of text.split(",").filter((one) => one.trim() !== "")) {
    const [, key, value] = PAIR_REGEXP.exec(pair) ?? [];
    if (key === undefined || value === undefined) return undefined;
    try {
      attributes[decodeURIComponent(key)] = decodeURIComponent(value);
    } catch {
      return undefined;
    }
  }
  return attributes;
}

/** The choice of traced requests. */
export interface Sampling {
  /** Share of sampled requests among those without a caller's trace. */
  readonly rootRatio: number;
  /** The SDK's sampler, for requests that larder samples and for callers' traces. */
  readonly sampler: Sampler;
}

/** Samplers by `OTEL_TRACES_SAMPLER`: the ratio, and whether a caller's decision counts. */
const SAMPLERS: Readonly<Record<string, (ratio: number) => readonly [number, boolean]>> = {
  always_on: () => [1, false],
  always_off: () => [0, false],
  traceidratio: (ratio) => [ratio, false],
  parentbased_always_on: () => [1, true],
  parentbased_always_off: () => [0, true],
  parentbased_traceidratio: (ratio) => [ratio, true],
};

/** The sampling of the environment. By default, and for invalid values, everything is traced. */
export function samplingOf(variable: Variable, reportInvalid: ReportInvalid): Sampling {
  const name = variable("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const ratio = numberIn(variable("OTEL_TRACES_SAMPLER_ARG") ?? "1");
  const isRatio = ratio >= 0 && ratio <= 1;
  if (!isRatio) reportInvalid("OTEL_TRACES_SAMPLER_ARG");
  const known = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (known === undefined) reportInvalid("OTEL_TRACES_SAMPLER");
  const [rootRatio, follows] = known?.(isRatio ? ratio : 1) ?? [1, true];
  return { rootRatio, sampler: new DecidedSampler(rootRatio, follows) };
}

const SAMPLED = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const NOT_SAMPLED = { decision: SamplingDecision.NOT_RECORD };

/** Samples every trace that began here, and follows the caller's decision for others. */
class DecidedSampler implements Sampler {
  readonly #byTraceId: Sampler;
  readonly #followsCaller: boolean;

  constructor(ratio: number, followsCaller: boolean) {
    this.#byTraceId = new TraceIdRatioBasedSampler(ratio);
    this.#followsCaller = followsCaller;
  }

  shouldSample(...parameters: Parameters<Sampler["shouldSample"]>): SamplingResult {
    const [context] = parameters;
    const parent = trace.getSpanContext(context);
    if (!parent?.isRemote) return SAMPLED;
    if (!this.#followsCaller) return this.#byTraceId.shouldSample(...parameters);
    return parent.traceFlags & TraceFlags.SAMPLED ? SAMPLED : NOT_SAMPLED;
  }

  toString(): string {
    return "DecidedSampler";
  }
}
