import assert from "node:assert/strict";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;

Deno.test("timeout: an upstream that does not accept is 404 after the dial timeout", async () => {
  await using full = await fullListener();
  const limits = { headerTimeoutMs: 10_000, dialTimeoutMs: 300 };
  await using cache = await TestCache.open({ upstreams: [full.url], limits });
  assert.equal((await cache.get(PATH)).status, 404);
  assert.match(String(cache.logged("warn")[0]?.["detail"]), /connecting took over 300ms/);
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
