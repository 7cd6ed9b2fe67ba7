import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { FaultProxy } from "../../support/fault_proxy.ts";
import { rawRequest, requestText } from "../../support/raw_http.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const BIG = makeStoreObject({ name: "big", size: 1_000_000 });

Deno.test("a fault proxy forwards, counts connections and cuts after the set bytes", async () => {
  await using upstream = await fakeUpstream({ dialect: "nix-serve", objects: [BIG] });
  await using proxy = new FaultProxy({ targetPort: upstream.port });
  const request = requestText("GET", `/${await upstream.narUrlOf(BIG)}`);

  const whole = await rawRequest(proxy.port, request);
  proxy.cutAfterBytes = 20_000;
  const cut = await rawRequest(proxy.port, request);

  assert.deepEqual(whole.body, BIG.nar);
  assert.equal(cut.complete, false);
  assert.ok(cut.body.length > 19_000 && cut.body.length < 20_000);
  assert.equal(proxy.connectionCount, 2);
});

Deno.test("a fault proxy that refuses makes requests fail", async () => {
  await using proxy = new FaultProxy({ targetPort: 1 });
  proxy.isRefusing = true;

  await assert.rejects(fetch(proxy.url), TypeError);

  assert.equal(proxy.connectionCount, 1);
});

Deno.test("nothing passes a paused fault proxy until it resumes", async () => {
  await using upstream = await fakeUpstream();
  await using proxy = new FaultProxy({ targetPort: upstream.port });
  proxy.pause();

  const answer = fetch(`${proxy.url}/nix-cache-info`);
  await (await fetch(`${upstream.url}/nix-cache-info`)).body?.cancel();
  assert.equal(upstream.requests.length, 1);
  proxy.resume();

  assert.equal((await (await answer).text()).length > 0, true);
  assert.equal(upstream.requests.length, 2);
});

Deno.test("a fault proxy can be closed with connections in the middle of an answer", async () => {
  await using upstream = await fakeUpstream({ dialect: "nix-serve", objects: [BIG] });
  const proxy = new FaultProxy({ targetPort: upstream.port });
  const answer = await fetch(`${proxy.url}/${await upstream.narUrlOf(BIG)}`);

  await proxy[Symbol.asyncDispose]();

  await assert.rejects(answer.bytes(), TypeError);
  assert.equal(proxy.openCount, 0);
});
