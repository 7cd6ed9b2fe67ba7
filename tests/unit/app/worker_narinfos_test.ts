import assert from "node:assert/strict";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { clock } from "../../../src/runtime/current.ts";
import type { NarinfoFetcher, NarinfoWatch } from "../../../src/upstream/http/narinfo_fetcher.ts";
import { crowdNarinfos, workerNarinfos } from "../../support/crowd_narinfos.ts";
import { eventually } from "../../support/eventually.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { stallAfter } from "../../support/faults.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const { storePathHash } = object;
const PATH = `/${storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;
const rules = { secretKey: generateSecretKey("larder.test"), requireSignature: true };

function ask(fetcher: NarinfoFetcher, watch: Partial<NarinfoWatch> = {}) {
  return fetcher.fetch({ storePathHash, headers: {}, isFinal: false }, {
    signal: new AbortController().signal,
    answered() {},
    busy() {},
    ...watch,
  });
}

Deno.test("narinfo Worker: the status of a body that never ends is known", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = workerNarinfos({ upstream, ...rules });
  const { crowd } = await crowdNarinfos(worker, upstream);
  upstream.breakNarinfo(stallAfter(20));
  const statuses: number[] = [];
  const answered = (status: number) => void statuses.push(status);
  let waitMs = 50;
  // The status comes some time after the body has begun, and shows only at the end.
  await eventually("the status is known", async () => {
    const abort = new AbortController();
    const count = upstream.count(PATH);
    const reading = ask(crowd, { signal: abort.signal, answered });
    const request = await upstream.requested(PATH, count + 1);
    await eventually("the body has begun", () => request.sentBytes > 0);
    await clock.pause(waitMs *= 2);
    abort.abort();
    assert.equal((await reading).kind, "failed");
    return statuses.length > 0;
  });
  assert.deepEqual(statuses, [200]);
});

Deno.test("narinfo Worker: a lone narinfo stays on the thread that answers", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = workerNarinfos({ upstream, ...rules });
  const { alone, crowd } = await crowdNarinfos(worker, upstream);
  assert.equal((await ask(crowd)).kind, "found");
  await eventually("the crowd is over", async () => (await ask(alone)).kind === "failed");
});
