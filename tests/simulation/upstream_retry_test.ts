import assert from "node:assert/strict";
import { prometheusText } from "../../src/telemetry/prometheus.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { Scrape } from "../support/scrape.ts";
import {
  type Alteration,
  cutAt,
  inTurn,
  OBJECT,
  reset,
  sceneTest,
  startOf,
  status,
} from "./scene.ts";

const PATH = `/${OBJECT.storePathHash}.narinfo`;
const honest: Alteration = (answer) => answer;
const busy = (retryAfter: string) => status(503, { "retry-after": retryAfter });

/** Faults that are over at the next request, and the least and longest pauses before two retries. */
const PASSING: Readonly<Record<string, readonly [fault: Alteration, leastMs: number]>> = {
  "a reset before the headers": [reset, 120],
  "status 429 with Retry-After": [status(429, { "retry-after": "0" }), 0],
  "status 503 with Retry-After": [busy("0"), 0],
  "status 503 with Retry-After of a second": [busy("1"), 2_000],
  "status 503 with a date that is over": [busy("Fri, 01 Jan 2010 00:00:00 GMT"), 0],
  "status 503 alone": [status(503), 120],
};
/** A random half of 20 and of 100 ms is added to the two pauses. */
const JITTER_MAX_MS = 60;

for (const [name, [fault, leastMs]] of Object.entries(PASSING)) {
  const twice = () => inTurn(fault, fault, honest);

  sceneTest(
    `retry: after ${name} larder tries again, for narinfo and NAR`,
    { upstreams: [{ narinfo: twice(), nar: twice() }] },
    async (scene) => {
      const narinfo = await scene.get(PATH);
      const nar = await scene.nar();
      assertSameBytes(nar.bytes, OBJECT.nar);
      for (const { status, headMs } of [narinfo, nar]) {
        assert.equal(status, 200);
        assert.ok(headMs >= leastMs && headMs <= leastMs + JITTER_MAX_MS, `${headMs} ms`);
      }
      assert.deepEqual([scene.counts(/\.narinfo$/), scene.counts(/^\/nar\//)], [[3], [3]]);
    },
  );

  sceneTest(
    `retry: ${name} without an end is 404 after three requests, and no absence`,
    { upstreams: [{ narinfo: fault }] },
    async (scene) => {
      const { status, headMs } = await scene.get(PATH);
      assert.deepEqual([status, scene.counts(/\.narinfo$/)], [404, [3]]);
      assert.ok(headMs >= leastMs && headMs <= leastMs + JITTER_MAX_MS, `${headMs} ms`);
      const metrics = new Scrape(await prometheusText(scene.metrics.snapshot()));
      const counts = Object.values(metrics.upstreamResults("http://u0"));
      assert.equal(counts.reduce((sum, count) => sum + count, 0), 1, "they are one");
      scene.behave(0);
      assert.equal((await scene.get(PATH)).status, 200);
    },
  );
}

sceneTest(
  "retry: an upstream that sheds load halfway finishes the NAR later",
  { upstreams: [{}] },
  async (scene) => {
    const rest = inTurn(busy("0"), busy("0"), honest);
    const nar: Alteration = (answer, request) =>
      (
        startOf(request.headers) > 0 ? rest : cutAt(80_000)
      )(answer, request);
    scene.behave(0, { nar });
    assertSameBytes((await scene.nar()).bytes, OBJECT.nar);
  },
);
