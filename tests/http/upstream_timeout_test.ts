import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { stallAfter } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 500_000 });
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;

Deno.test("timeout: an upstream that does not accept is 404 after the dial timeout", async () => {
  await using full = await fullListener();
  const limits = { headerTimeoutMs: 10_000, dialTimeoutMs: 300 };
  await using cache = await TestCache.open({ upstreams: [full.url], limits });
  assert.equal((await cache.get(PATH)).status, 404);
  assert.match(String(cache.logged("warn")[0]?.["detail"]), /connecting took over 300ms/);
});

Deno.test("timeout: a NAR body may take long as long as bytes keep coming", async () => {
  await using upstream = await fakeUpstream(stored);
  // Four stalls, each well below the limit, in all well above it.
  for (const bytes of [100_000, 200_000, 300_000, 400_000]) {
    upstream.breakNar(
      stallAfter(bytes, new Promise((resume) => setTimeout(resume, bytes / 1_000))),
    );
  }
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 250 });
  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  assert.equal(body.length, (await upstream.narFileOf(object)).bytes.length);
});

/** A port whose queue of connections is full: the system answers nothing more. */
async function fullListener(): Promise<AsyncDisposable & { readonly url: string }> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const { port } = listener.addr;
  const connections: Deno.Conn[] = [];
  for (let full = false; !full;) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), 200);
    try {
      connections.push(
        await Deno.connect({ hostname: "127.0.0.1", port, signal: abort.signal }),
      );
    } catch {
      full = true;
    }
    clearTimeout(timer);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const connection of connections) connection.close();
      listener.close();
    },
  };
}
