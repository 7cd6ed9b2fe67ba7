import assert from "node:assert/strict";
import { parsePublicKey } from "../../../../src/nix/signature.ts";
import { ServerClient } from "../../../../src/cli/client/server_client.ts";
import { checkPull } from "../../../../src/cli/doctor/pull_check.ts";
import { type FakeUpstream, fakeUpstream } from "../../../support/fake_upstream.ts";
import { corruptByteAt } from "../../../support/faults.ts";
import { makeStoreObject } from "../../../support/store_object.ts";

const object = makeStoreObject({ name: "tool-1.0", size: 5_000 });
const OTHER_KEY = "other-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=";

/** A binary cache stands for larder: a client cannot tell them apart. */
function orderFor(upstream: FakeUpstream, key = upstream.publicKey) {
  const server = { kind: "http", url: upstream.url } as const;
  const client = new ServerClient({ server, token: undefined });
  const target = { shown: upstream.url, client };
  return { target, given: [], stored: [object.storePathHash], keys: [parsePublicKey(key)] };
}

Deno.test("doctor: a stored path is pulled and verified as a client does", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const finding = await checkPull(orderFor(upstream));
  assert.equal(finding.mark, "ok");
  assert.match(finding.fact, /tool-1\.0 .* signed by nixos-1$/);
});

Deno.test("doctor: a pull follows the redirect of a NAR to its store", async () => {
  await using store = await fakeUpstream({ objects: [object], stored: true });
  await using upstream = await fakeUpstream({
    objects: [object],
    stored: true,
    onRequest: ({ path }) =>
      path.startsWith("/nar/")
        ? new Response(null, { status: 307, headers: { location: store.url + path } })
        : undefined,
  });
  const finding = await checkPull(orderFor(upstream));
  assert.equal(finding.mark, "ok", finding.fact);
  assert.equal(store.count(/^\/nar\//), 1);
});

Deno.test("doctor: a pull without a trusted signature failed", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const finding = await checkPull(orderFor(upstream, OTHER_KEY));
  assert.deepEqual([finding.mark, /no key that clients trust/.test(finding.fact)], [
    "failed",
    true,
  ]);
});

Deno.test("doctor: a pull of wrong bytes failed", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(corruptByteAt(2_000));
  const finding = await checkPull(orderFor(upstream));
  assert.equal(finding.mark, "failed");
});

Deno.test("doctor: without a path there is no pull; a given one must be there", async () => {
  await using upstream = await fakeUpstream();
  const order = orderFor(upstream);
  assert.equal((await checkPull({ ...order, stored: [] })).mark, "not checked");
  assert.equal((await checkPull(order)).mark, "not checked");
  const given = await checkPull({ ...order, given: order.stored });
  assert.equal(given.mark, "failed");
  assert.match(given.fact, /neither larder nor an upstream has it/);
});
