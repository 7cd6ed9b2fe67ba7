import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
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

const parentBased = (root: Sampler) => new ParentBasedSampler({ root });

/** By the value of `OTEL_TRACES_SAMPLER`. */
const SAMPLERS: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => parentBased(new AlwaysOnSampler()),
  parentbased_always_off: () => parentBased(new AlwaysOffSampler()),
  parentbased_traceidratio: (ratio) => parentBased(new TraceIdRatioBasedSampler(ratio)),
};

/** What is traced. `complain` is told of a value that nobody knows; everything is traced then. */
export function samplerOf(variable: Variable, complain: (variable: string) => void): Sampler {
  const name = variable("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const given = variable("OTEL_TRACES_SAMPLER_ARG");
  const ratio = Number(given ?? 1);
  const isRatio = ratio >= 0 && ratio <= 1;
  if (!isRatio) complain("OTEL_TRACES_SAMPLER_ARG");
  const make = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (make === undefined) complain("OTEL_TRACES_SAMPLER");
  return (make ?? (() => parentBased(new AlwaysOnSampler())))(isRatio ? ratio : 1);
}
