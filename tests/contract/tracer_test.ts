import { NO_TRACER, type RunBelow, type Tracer } from "../../src/telemetry/tracer.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { checkContract } from "./contract.ts";
import { tracerClauses, type TracerScene } from "./tracer_contract.ts";

const atOnce: RunBelow = (work) => work();

type Opener = () => TracerScene & Disposable;

const openers: Readonly<Record<string, Opener>> = {
  "OtelTracer within a request": () => {
    const { tracer } = new RecordedSpans();
    const request = tracer.request("GET", "/", new Headers());
    if (request === undefined) throw new Error("Cannot begin request: it is not sampled");
    return { tracer, within: request.run, [Symbol.dispose]: () => request.end() };
  },
  "OtelTracer without a request": () => alone(new RecordedSpans().tracer),
  "OtelTracer that samples nothing": () =>
    alone(new RecordedSpans({ OTEL_TRACES_SAMPLER: "always_off" }).tracer),
  "OtelTracer after its request": () => {
    const { tracer } = new RecordedSpans();
    const request = tracer.request("GET", "/", new Headers());
    request?.end();
    return { tracer, within: request?.run ?? atOnce, [Symbol.dispose]() {} };
  },
  NO_TRACER: () => alone(NO_TRACER),
};

for (const [name, openScene] of Object.entries(openers)) {
  const open = async () => {
    const scene = openScene();
    return { ...scene, [Symbol.asyncDispose]: async () => scene[Symbol.dispose]() };
  };
  checkContract({ name, open }, tracerClauses);
}

function alone(tracer: Tracer): TracerScene & Disposable {
  return { tracer, within: atOnce, [Symbol.dispose]() {} };
}
