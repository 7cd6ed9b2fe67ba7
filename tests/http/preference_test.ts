import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil, status } from "../support/faults.ts";
import { badSignature } from "../support/narinfo_faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;

/** The name of the key of the upstream whose narinfo was served, besides ours. */
async function winner(options: TestCacheOptions): Promise<string | undefined> {
  await using cache = await TestCache.open(options);
  return /^Sig: (?!larder)([a-z]+)/m.exec(await cache.narinfo(object.storePathHash))?.[1];
}

Deno.test("preference: a request goes to all upstreams, the lower Priority wins", async () => {
  await using first = await fakeUpstream({ ...stored, dialect: "nixos", priority: 40 });
  await using second = await fakeUpstream({ ...stored, dialect: "cachix", priority: 30 });
  assert.equal(await winner({ upstreams: [first, second] }), "cachix");
  assert.equal(first.count(PATH), 1);
});

Deno.test("preference: of equal priorities the one given first wins", async () => {
  await using first = await fakeUpstream({ ...stored, dialect: "nixos" });
  await using second = await fakeUpstream({ ...stored, dialect: "cachix" });
  assert.equal(await winner({ upstreams: [second, first] }), "cachix");
});

Deno.test("preference: ?priority=N on the URL overrides the upstream's Priority", async () => {
  await using first = await fakeUpstream({ ...stored, dialect: "nixos", priority: 10 });
  await using second = await fakeUpstream({ ...stored, dialect: "cachix", priority: 50 });
  const priorities = [undefined, 5];
  assert.equal(await winner({ upstreams: [first, second], priorities }), "cachix");
});

Deno.test("preference: an upstream that names no priority has Nix's, 50", async () => {
  await using unnamed = await fakeUpstream({ ...stored, dialect: "nixos", priority: "absent" });
  await using named = await fakeUpstream({ ...stored, dialect: "cachix", priority: 49 });
  assert.equal(await winner({ upstreams: [unnamed, named] }), "cachix");
});

Deno.test("preference: the preferred one is waited for, the other is not", async () => {
  const answer = Promise.withResolvers<void>();
  await using preferred = await fakeUpstream({ ...stored, dialect: "nixos", priority: 10 });
  await using other = await fakeUpstream({ ...stored, dialect: "cachix", priority: 20 });
  preferred.breakNarinfo(heldUntil(answer.promise));
  const won = winner({ upstreams: [preferred, other] });
  await preferred.requested(PATH);
  await other.requested(PATH);
  answer.resolve();
  assert.equal(await won, "nixos");

  preferred.mend();
  const never = Promise.withResolvers<void>();
  other.breakNarinfo(heldUntil(never.promise));
  assert.equal(await winner({ upstreams: [preferred, other] }), "nixos");
  never.resolve();
});

Deno.test("preference: an invalid answer of the preferred one loses to a valid one", async () => {
  for (const fault of [badSignature(), status(404), status(500)]) {
    await using preferred = await fakeUpstream({ ...stored, dialect: "nixos", priority: 10 });
    await using other = await fakeUpstream({ ...stored, dialect: "cachix", priority: 20 });
    preferred.breakNarinfo(fault);
    assert.equal(await winner({ upstreams: [preferred, other] }), "cachix");
  }
});

Deno.test("preference: a key of the pool is good whichever upstream it is from", async () => {
  await using signer = await fakeUpstream({ ...stored, dialect: "nixos" });
  await using mirror = await fakeUpstream({ ...stored, dialect: "cachix" });
  const text = await signer.narinfoOf(object);
  mirror.onRequest = ({ path }) => path.endsWith(".narinfo") ? new Response(text) : undefined;
  await signer.stop();
  assert.equal(await winner({ upstreams: [mirror, signer] }), "nixos");
});
