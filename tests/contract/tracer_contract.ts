import assert from "node:assert/strict";
import { beginSpan, type RunBelow, type Tracer } from "../../src/telemetry/tracer.ts";
import { turns } from "../support/mortal_life.ts";
import type { Clauses } from "./contract.ts";

export interface TracerScene {
  readonly tracer: Tracer;
  /** Runs work within a request, or without one. */
  readonly within: RunBelow;
}

const START = { name: "work", kind: "client", facts: { "larder.nar": "a" } } as const;

/** The promises to code that is traced: tracing changes nothing that it does. */
export const tracerClauses: Clauses<TracerScene> = {
  "span() resolves to the value of its work": async ({ tracer, within }) => {
    const value = {};
    const work = () => turns().then(() => value);
    assert.equal(await within(() => tracer.span(START, work)), value);
  },

  "span() rejects with the error of its work": async ({ tracer, within }) => {
    const error = new Error("it broke");
    const work = () => turns().then(() => Promise.reject(error));
    await assert.rejects(within(() => tracer.span(START, work)), (thrown) => thrown === error);
  },

  "span() begins its work at once": async ({ tracer, within }) => {
    let isBegun = false;
    const work = async () => void (isBegun = true);
    const spanned = within(() => tracer.span(START, work));
    assert.equal(isBegun, true);
    await spanned;
  },

  "a span takes facts and failures, below another one, too": async ({ tracer, within }) => {
    const value = await within(() =>
      tracer.span(START, async (span) => {
        span.set({ "http.response.status_code": 500 });
        span.fail("reason");
        tracer.note({ "larder.nar": "b" });
        return await tracer.span(START, async (below) => {
          below.fail("reason");
          return 1;
        });
      })
    );
    assert.equal(value, 1);
  },

  "here() runs later work, with its value and its error": async ({ tracer, within }) => {
    const run = within(() => tracer.here());
    assert.equal(run(() => 1), 1);
    assert.throws(() => run(() => assert.fail("it broke")), /it broke/);
  },

  "outside of a request there are no ids, no headers, and notes go nowhere": async (scene) => {
    const { tracer } = scene;
    assert.equal(tracer.ids(), undefined);
    assert.deepEqual(tracer.headers(), {});
    assert.equal(tracer.note({ "larder.nar": "a" }), undefined);
  },

  "headers() name the trace and the span of ids(), or nothing": async ({ tracer, within }) => {
    const [ids, headers] = within(() => [tracer.ids(), tracer.headers()]);
    const names = [`00-${ids?.trace_id}-${ids?.span_id}-01`];
    const named = Object.values(headers);
    assert.deepEqual(named, named.length === 0 ? [] : names);
  },

  "a request runs its work with its value and its error": async ({ tracer }) => {
    const request = tracer.request("GET", "/", new Headers());
    if (request === undefined) return;
    assert.equal(request.run(() => 1), 1);
    assert.throws(() => request.run(() => assert.fail("it broke")), /it broke/);
    request.end();
  },

  "a span in steps runs work, and its error is no unhandled rejection": async (scene) => {
    const { tracer, within } = scene;
    for (const error of [undefined, new Error("it broke")]) {
      const open = within(() => beginSpan(tracer, START));
      open.set({ "larder.nar": "a" });
      assert.equal(open.run(() => 1), 1);
      open.end(error);
      await turns();
    }
  },
};
