import assert from "node:assert/strict";
import { after, never, playScene, type SceneUpstream, startOf, status } from "./scene.ts";

const TIMEOUT_MS = 3_000;
const THIRD_MS = TIMEOUT_MS / 3;
/** As `TIMEOUT_MS`, so that a silent source is given up then. */
const timeouts = { headerTimeoutMs: TIMEOUT_MS, idleTimeoutMs: TIMEOUT_MS };

/** A limit that leaves no room has the NAR passed through. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  const nar = (...upstreams: SceneUpstream[]) => pulled(upstreams, { limitBytes });

  Deno.test(`hedging: ${way}, the next upstream gets a request if the first is late`, async () => {
    const { answer, headMs, askedAtMs } = await nar({ nar: never }, {});
    assert.deepEqual([answer, headMs], ["whole", THIRD_MS]);
    assert.deepEqual(askedAtMs, [[0], [THIRD_MS]]);
  });

  Deno.test(`hedging: ${way}, no other gets a request if the first answers in time`, async () => {
    const { answer, headMs, askedAtMs } = await nar({ nar: after(THIRD_MS - 1) }, {}, {});
    assert.deepEqual([answer, headMs], ["whole", THIRD_MS - 1]);
    assert.deepEqual(askedAtMs, [[0], [], []]);
  });

  Deno.test(`hedging: ${way}, the first is still waited for, and the second given up`, async () => {
    const { answer, headMs, askedAtMs } = await nar({ nar: after(THIRD_MS + 500) }, { nar: never });
    assert.deepEqual([answer, headMs], ["whole", THIRD_MS + 500]);
    assert.deepEqual(askedAtMs, [[0], [THIRD_MS]]);
  });

  Deno.test(`hedging: ${way}, two that hang are 404 after the timeout and a third`, async () => {
    const { answer, headMs, askedAtMs } = await nar({ nar: never }, { nar: never });
    assert.deepEqual([answer, headMs], [404, TIMEOUT_MS + THIRD_MS]);
    assert.deepEqual(askedAtMs, [[0], [THIRD_MS]]);
  });

  Deno.test(`hedging: ${way}, after a failure the next one gets a request at once`, async () => {
    const { answer, headMs } = await nar({ nar: status(500) }, { nar: status(404) }, {});
    assert.deepEqual([answer, headMs], ["whole", 0]);
  });

  Deno.test(`hedging: ${way}, one that was outrun goes on for a broken one`, async () => {
    const quicker: SceneUpstream["nar"] = (answer, { headers }) =>
      startOf(headers) > 0 ? { ...answer, cutAt: 0 } : { ...answer, cutAt: 300_000 };
    const { answer } = await nar({ nar: after(THIRD_MS + 200) }, { nar: quicker });
    assert.equal(answer, "whole");
  });
}

Deno.test("hedging: HEAD asks the next upstream when the first is late, too", async () => {
  const { answer, headMs } = await pulled([{ nar: never }, {}], { method: "HEAD" });
  assert.deepEqual([answer, headMs], [200, THIRD_MS]);
});

Deno.test("NAR's size: two upstreams that say nothing cost the timeout and a third", async () => {
  const { answer, headMs } = await pulled([{ nar: never }, { nar: never }], { method: "HEAD" });
  assert.deepEqual([answer, headMs], [404, TIMEOUT_MS + THIRD_MS]);
});

interface PullOptions {
  readonly limitBytes?: number;
  readonly method?: "GET" | "HEAD";
}

/** Requests the NAR: what the client saw, and when each upstream got which request. */
async function pulled(
  upstreams: readonly SceneUpstream[],
  { limitBytes = Infinity, method = "GET" }: PullOptions,
) {
  return await playScene({ upstreams, limitBytes, timeouts }, async (scene) => {
    const path = await scene.narPath();
    const startedAtMs = scene.nowMs;
    const seen = await scene.request(method, path);
    const isWhole = method === "GET" && seen.status === 200 && seen.isWhole;
    const askedAtMs = scene.upstreams.map((upstream) =>
      scene.requestsOf(upstream, /^\/nar\//).map(({ atMs }) => atMs - startedAtMs)
    );
    return { ...seen, answer: isWhole ? "whole" : seen.status, askedAtMs };
  });
}
