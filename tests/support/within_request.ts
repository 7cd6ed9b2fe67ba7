import assert from "node:assert/strict";
import type { Tracer } from "../../src/telemetry/tracer.ts";

/** A port, all of whose calls belong to one sampled request, so that spans record them. */
export function withinRequest<Port extends object>(inner: Port, tracer: Tracer): Port {
  const request = tracer.request("GET", "/", new Headers());
  assert.ok(request !== undefined);
  const { run } = request;
  return new Proxy(inner, {
    get(target, key) {
      const value = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) => run(() => Reflect.apply(value, target, args));
    },
  });
}
