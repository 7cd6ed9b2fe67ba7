import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { HttpProxy } from "../support/http_proxy.ts";
import { startLarder } from "../support/larder_process.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Answer } from "../support/wire_answer.ts";

const object = makeStoreObject({ name: "thing-1.0" });

/** Longer than the time after which an answer is taken to be late. */
const LATE_MS = 250;

for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]) {
  Deno.test(`${name}: narinfo, NAR and cache info go through it, and nothing beside`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    upstream.breakNarinfo(late);
    await using proxy = new HttpProxy(upstream.port);
    using direct = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const dialed = countConnections(direct);
    const url = `http://127.0.0.1:${direct.addr.port}`;
    const flags = { "cache-upstream-url": url, "cache-upstream-public-key": upstream.publicKey };
    await using larder = await startLarder(flags, { [name]: proxy.url });

    const narinfo = await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
    const nar = await fetch(`${larder.url}/${/^URL: (.*)$/m.exec(narinfo)?.[1]}`);

    assertSameBytes(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
    await upstream.requested("/nix-cache-info");
    // Of larder; the runtime itself may look for a new version of its own.
    const lines = new Set(proxy.requestLines.filter((line) => line.startsWith("GET ")));
    assert.equal(lines.size, 3, [...lines].join("; "));
    for (const line of lines) assert.ok(line.startsWith(`GET ${url}/`), line);
    assert.equal(dialed.count, 0);
  });
}

for (const name of ["NO_PROXY", "no_proxy"]) {
  Deno.test(`${name}: requests to an upstream that it names bypass the proxy`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using proxy = new HttpProxy(upstream.port);
    const environment = { HTTP_PROXY: proxy.url, [name]: "127.0.0.1" };
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
    }, environment);
    const answer = await fetch(`${larder.url}/${object.storePathHash}.narinfo`);
    await answer.body?.cancel();
    assert.equal(answer.status, 200);
    assert.deepEqual(proxy.requestLines, []);
  });
}

async function late(answer: Answer): Promise<Answer> {
  await new Promise((resume) => setTimeout(resume, LATE_MS));
  return answer;
}

function countConnections(listener: Deno.TcpListener): { readonly count: number } {
  const counted = { count: 0 };
  (async () => {
    for await (const connection of listener) {
      counted.count++;
      connection.close();
    }
  })();
  return counted;
}
