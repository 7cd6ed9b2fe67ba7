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

/** Who tells: `OTEL_SERVICE_NAME` wins over `OTEL_RESOURCE_ATTRIBUTES`, that over ours. */
export function resourceOf(variable: Variable, { version, instanceId }: Service): Resource {
  const name = variable("OTEL_SERVICE_NAME");
  return resourceFromAttributes({
    "service.name": "larder",
    "service.version": version,
    "service.instance.id": instanceId,
    ...attributesIn(variable("OTEL_RESOURCE_ATTRIBUTES") ?? ""),
    ...(name === undefined ? {} : { "service.name": name }),
  });
}

/** `key=value,…`, percent-encoded. One malformed pair spoils all of them, as specified. */
function attributesIn(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "").map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const;
  });
  try {
    if (pairs.some(([key]) => key === "")) return {};
    return Object.fromEntries(pairs.map((pair) => pair.map(decodeURIComponent)));
  } catch {
    return {};
  }
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

/** What is traced. `complain` is told of a value that nobody knows; everything is traced then. */
export function samplingOf(variable: Variable, complain: (variable: string) => void): Sampling {
  const name = variable("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const given = variable("OTEL_TRACES_SAMPLER_ARG");
  const ratio = Number(given ?? 1);
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
