import { trace, TraceFlags } from "@opentelemetry/api";
import {
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";

/** A variable's value; `undefined` when it is not set, or empty. */
export type Variable = (name: string) => string | undefined;

export interface Service {
  readonly version: string;
  /** Names this process among several. */
  readonly instanceId: string;
}

/** Told of a variable whose value means nothing to us; what it stands for has its default. */
export type Complain = (variable: string) => void;

const METRICS_EVERY_MS = 60_000;

/** A timer that is to wait longer goes off at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** How often metrics are sent, in ms. */
export function metricsEveryMs(variable: Variable, complain: Complain): number {
  const given = variable("OTEL_METRIC_EXPORT_INTERVAL") ?? String(METRICS_EVERY_MS);
  const everyMs = numberIn(given);
  if (everyMs >= 1 && everyMs <= TIMER_MAX_MS) return everyMs;
  complain("OTEL_METRIC_EXPORT_INTERVAL");
  return METRICS_EVERY_MS;
}

/** NaN for what is none, blanks included. */
function numberIn(text: string): number {
  return text.trim() === "" ? NaN : Number(text);
}

/** Who tells: `OTEL_SERVICE_NAME` wins over `OTEL_RESOURCE_ATTRIBUTES`, that over ours. */
export function resourceOf(
  variable: Variable,
  { version, instanceId }: Service,
  complain: Complain,
): Resource {
  const name = variable("OTEL_SERVICE_NAME");
  const given = attributesIn(variable("OTEL_RESOURCE_ATTRIBUTES") ?? "");
  if (given === undefined) complain("OTEL_RESOURCE_ATTRIBUTES");
  return resourceFromAttributes({
    "service.name": "larder",
    "service.version": version,
    "service.instance.id": instanceId,
    ...given,
    ...(name === undefined ? {} : { "service.name": name }),
  });
}

const PAIR_REGEXP = /^\s*([^=\s][^=]*?)\s*=\s*(.*?)\s*$/s;

/** `key=value,…`, percent-encoded. One malformed pair spoils all of them, as specified. */
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

/** Which requests are traced. */
export interface Sampling {
  /** Of the requests that begin a trace, this part; nobody else decides over their traces. */
  readonly rootRatio: number;
  /** For the SDK, which is asked only for what is to be traced, and for others' traces. */
  readonly sampler: Sampler;
}

/** By the value of `OTEL_TRACES_SAMPLER`: the ratio, and whether a caller's decision counts. */
const SAMPLERS: Readonly<Record<string, (ratio: number) => readonly [number, boolean]>> = {
  always_on: () => [1, false],
  always_off: () => [0, false],
  traceidratio: (ratio) => [ratio, false],
  parentbased_always_on: () => [1, true],
  parentbased_always_off: () => [0, true],
  parentbased_traceidratio: (ratio) => [ratio, true],
};

/** What is traced: by default, and where a value is not understood, everything. */
export function samplingOf(variable: Variable, complain: Complain): Sampling {
  const name = variable("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const ratio = numberIn(variable("OTEL_TRACES_SAMPLER_ARG") ?? "1");
  const isRatio = ratio >= 0 && ratio <= 1;
  if (!isRatio) complain("OTEL_TRACES_SAMPLER_ARG");
  const known = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (known === undefined) complain("OTEL_TRACES_SAMPLER");
  const [rootRatio, follows] = known?.(isRatio ? ratio : 1) ?? [1, true];
  return { rootRatio, sampler: new DecidedSampler(rootRatio, follows) };
}

const SAMPLED = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const NOT_SAMPLED = { decision: SamplingDecision.NOT_RECORD };

/** Samples what was decided already; of a trace that came from elsewhere, as it is told. */
class DecidedSampler implements Sampler {
  readonly #byTraceId: Sampler;
  readonly #followsCaller: boolean;

  constructor(ratio: number, followsCaller: boolean) {
    this.#byTraceId = new TraceIdRatioBasedSampler(ratio);
    this.#followsCaller = followsCaller;
  }

  shouldSample(...asked: Parameters<Sampler["shouldSample"]>): SamplingResult {
    const [context] = asked;
    const parent = trace.getSpanContext(context);
    if (!parent?.isRemote) return SAMPLED;
    if (!this.#followsCaller) return this.#byTraceId.shouldSample(...asked);
    return parent.traceFlags & TraceFlags.SAMPLED ? SAMPLED : NOT_SAMPLED;
  }

  toString(): string {
    return "DecidedSampler";
  }
}
