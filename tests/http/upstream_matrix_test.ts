import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { dropped, heldUntil, status } from "../support/faults.ts";
import { badSignature, garbage } from "../support/narinfo_faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;
/** Where an upstream is silent. No other pair needs a timeout. */
const TIMEOUT_MS = 250;
const LONG_TIMEOUT_MS = 30_000;
/** The time that a request may take beside the upstream timeout. */
const SLACK_MS = 500;

/** The behaviours of an upstream when larder requests a narinfo. */
const BEHAVIOURS = {
  "200": undefined,
  "404": status(404),
  "500": status(500),
  "timeout": heldUntil(new Promise(() => {})),
  "reset": dropped(),
  "garbage": garbage(),
  "bad signature": badSignature(),
} as const;

type Behaviour = keyof typeof BEHAVIOURS;
const ALL = Object.keys(BEHAVIOURS) as Behaviour[];

for (const first of ALL) {
  for (const second of ALL) {
    const isPresent = first === "200" || second === "200";
    const isRemembered = first === "404" && second === "404";
    const outcome = isPresent ? "200" : isRemembered ? "404, remembered" : "404, not remembered";

    timedTest(`matrix: ${first} and ${second} are ${outcome}, in time`, async () => {
      await using one = await upstreamThat(first);
      await using other = await upstreamThat(second);
      const upstreams = [one, other];
      const isSilent = first === "timeout" || second === "timeout";
      const timeoutMs = isSilent ? TIMEOUT_MS : LONG_TIMEOUT_MS;
      await using cache = await TestCache.open({ upstreams, timeoutMs });
      await using server = cache.listen();

      const startedAtMs = performance.now();
      const answer = await rawRequest(server.port, requestText("GET", PATH));
      const tookMs = performance.now() - startedAtMs;

      assert.equal(answer.status, isPresent ? 200 : 404);
      assert.equal(answer.headers.get("x-cache"), "MISS");
      assertInTime(tookMs, TIMEOUT_MS + SLACK_MS);

      const again = await rawRequest(server.port, requestText("GET", PATH));
      assert.equal(again.status, answer.status);
      const source = isPresent || isRemembered ? "HIT" : "MISS";
      assert.equal(again.headers.get("x-cache"), source);
      if (isPresent) return;

      // A failure hides nothing: as soon as an upstream has the path, larder serves it.
      for (const upstream of upstreams) upstream.mend();
      const mended = await rawRequest(server.port, requestText("GET", PATH));
      assert.equal(mended.status, isRemembered ? 404 : 200);
    });
  }
}

async function upstreamThat(behaviour: Behaviour): Promise<FakeUpstream> {
  const upstream = await fakeUpstream({ objects: [object], stored: true });
  const fault = BEHAVIOURS[behaviour];
  if (fault !== undefined) upstream.breakNarinfo(fault);
  return upstream;
}
