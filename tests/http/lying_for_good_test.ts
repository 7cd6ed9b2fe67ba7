import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Bytes } from "../../src/base/bytes.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const victim = makeStoreObject({ name: "victim-1.0", size: 50_000 });

/** The responses of liars for the NARs that their narinfos lead to. */
const NARS: Readonly<Record<string, (right: Bytes) => Response>> = {
  "no NAR": () => new Response(null, { status: 404 }),
  "a failure": () => new Response(null, { status: 500 }),
  "a short NAR": (right) => new Response(right.slice(0, 20_000)),
  "a wrong NAR": (right) => new Response(right.toReversed()),
};

/** Where a narinfo announces another file hash each time, it leads to another name each time. */
const CLAIMS: Readonly<Record<string, (text: string, count: number) => string>> = {
  "one file": (text) => text.replace(/^FileSize: .*$/m, "FileSize: 60000"),
  "another file each time": (text, count) =>
    text.replace(/^FileHash: .*$/m, `FileHash: sha256:${String(count % 10).repeat(52)}`),
};

/** Signs nothing, and comes first. */
async function startLiar(
  honest: FakeUpstream,
  { nar, claim }: { readonly nar: string; readonly claim: string },
): Promise<FakeUpstream> {
  const right = (await honest.narFileOf(victim)).bytes;
  let count = 0;
  return await fakeUpstream({
    key: "none",
    priority: 1,
    onRequest: async ({ path }) => {
      if (path.startsWith("/nar/")) return NARS[nar]?.(right);
      if (path !== `/${victim.storePathHash}.narinfo`) return undefined;
      return new Response(CLAIMS[claim]?.(await honest.narinfoOf(victim), count++));
    },
  });
}

for (const nar of Object.keys(NARS)) {
  for (const claim of Object.keys(CLAIMS)) {
    for (const limitBytes of [undefined, 1_000]) {
      const how = limitBytes === undefined ? "kept" : "passed through";
      Deno.test(`liars: two of ${claim} with ${nar} hide a path no longer (${how})`, async () => {
        await using honest = await fakeUpstream({ objects: [victim], stored: true });
        await using one = await startLiar(honest, { nar, claim });
        await using two = await startLiar(honest, { nar, claim });
        const limit = limitBytes === undefined ? {} : { limitBytes };
        await using cache = await TestCache.open({
          upstreams: [one, two, honest],
          idleTimeoutMs: 200,
          ...limit,
        });
        const right = (await honest.narFileOf(victim)).bytes;
        const pull = async () => {
          const answer = await cache.get(await cache.narPath(victim.storePathHash));
          const bytes = await answer.bytes().catch(() => new Uint8Array());
          await cache.downloadsOver();
          return answer.status === 200 && Buffer.compare(bytes, right) === 0;
        };
        // One try for each liar.
        for (let count = 0; count < 2; count++) await pull();

        assert.ok(await pull());
      });
    }
  }
}
