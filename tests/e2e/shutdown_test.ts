import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { RawConnection, type RawHead, rawRequest, requestText } from "../support/raw_http.ts";
import { checkNar, servedNar, type ServedNarinfo, servedNarinfo } from "../support/served_nar.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const SIZE = 4_000_000;
const HALF = SIZE / 2;
const NO_UPSTREAM = { "cache-upstream-url": [] };

Deno.test("SIGTERM lets a download end, keeps it, and exits with 0", async () => {
  using storage = tempFolder();
  await using scene = await downloadHalfWay(storage.path);
  const { larder, upstream, narinfo, reader, half, gate } = scene;
  larder.kill("SIGTERM");
  assert.equal((await larder.logged("server shutdown")).signal, "SIGTERM");
  await eventually("nobody is let in", () => isRefused(larder.port));
  gate.open();
  await checkNar(narinfo, await new Blob([half, await reader.read()]).bytes());
  assert.ok(reader.isComplete);
  assert.equal((await larder.ended).code, 0);
  const aborted = larder.lines.filter(({ msg }) => msg === "requests aborted at shutdown");
  assert.deepEqual(aborted, [], "an idle connection holds up no shutdown");

  await upstream.stop();
  await using again = await startLarder(flagsOf(scene, storage.path));
  const { status, headers } = await servedNar(again.port, narinfo);
  assert.deepEqual([status, headers.get("x-cache")], [200, "HIT"]);
});

Deno.test("SIGTERM ends a larder without requests at once, with 0", async () => {
  await using upstream = await fakeUpstream();
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  });
  // A kept connection on which nothing is asked is no reason to stay.
  await using idle = await RawConnection.open(larder.port);
  await idle.send("GET /nix-cache-info HTTP/1.1\r\nHost: larder\r\n\r\n");
  assert.equal((await idle.answer()).status, 200);
  larder.kill("SIGTERM");
  assert.equal((await larder.ended).code, 0);
});

Deno.test("SIGTERM and a drain delay: /readyz is 503 for new clients, then it ends", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-drain-delay": "3s" });
  await using kept = await RawConnection.open(larder.port);
  await kept.send("GET /readyz HTTP/1.1\r\nHost: larder\r\n\r\n");
  assert.equal((await kept.answer()).status, 200);
  larder.kill("SIGTERM");
  await larder.logged("server shutdown");
  await eventually("it says no", async () => await statusOf(larder.port, "/readyz") === 503);
  assert.equal(await statusOf(larder.port, "/nix-cache-info"), 200);
  // A balancer must not send more over a connection that is about to close.
  await kept.send("GET /nix-cache-info HTTP/1.1\r\nHost: larder\r\n\r\n");
  assert.equal((await kept.answer()).headers.get("connection"), "close");
  assert.equal((await larder.ended).code, 0);
});

Deno.test("a second signal ends the drain delay at once", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-drain-delay": "1m" });
  larder.kill("SIGTERM");
  await larder.logged("server shutdown");
  assert.equal(await statusOf(larder.port, "/healthz"), 200);
  larder.kill("SIGTERM");
  assert.equal((await larder.ended).code, 143);
});

for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
  Deno.test(`a second ${signal} ends it at once, and nothing partial is kept`, async () => {
    using storage = tempFolder();
    await using scene = await downloadHalfWay(storage.path);
    const { larder, upstream, narinfo, reader } = scene;
    larder.kill(signal);
    await larder.logged("server shutdown");
    larder.kill(signal);
    assert.equal((await larder.ended).code, code);
    await reader.read();
    assert.ok(!reader.isComplete, "the client sees that its transfer broke");

    await upstream.stop();
    await using again = await startLarder(flagsOf(scene, storage.path));
    assert.equal((await servedNar(again.port, narinfo)).status, 404);
  });
}

Deno.test("after a restart everything is served as before, with the upstream off", async () => {
  using storage = tempFolder();
  const objects = chain(5);
  await using upstream = await fakeUpstream({ objects, stored: true });
  const flags = flagsOf({ upstream }, storage.path);
  const before = await serveAll(flags, "SIGTERM");
  await upstream.stop();
  assert.deepEqual(await serveAll(flags, "SIGKILL"), before);
  assert.deepEqual(await serveAll(flags, "SIGTERM"), before);

  async function serveAll(given: typeof flags, signal: Deno.Signal) {
    await using larder = await startLarder(given);
    const texts = [await (await fetch(`${larder.url}/pubkey`)).text()];
    for (const { storePathHash } of objects) {
      texts.push(await (await fetch(`${larder.url}/${storePathHash}.narinfo`)).text());
      const narinfo = await servedNarinfo(larder.port, storePathHash);
      assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    }
    larder.kill(signal);
    await larder.ended;
    return texts;
  }
});

interface Scene extends AsyncDisposable {
  readonly larder: LarderProcess;
  readonly upstream: Awaited<ReturnType<typeof fakeUpstream>>;
  readonly gate: Gate;
  readonly narinfo: ServedNarinfo;
  /** The bytes of the NAR that a client has. */
  readonly half: Bytes;
  readonly reader: RawHead["reader"];
}

/** A client that has half of a NAR whose other half the upstream still holds back. */
async function downloadHalfWay(storage: string): Promise<Scene> {
  await using resources = new AsyncDisposableStack();
  const object = makeStoreObject({ name: "half-way", size: SIZE });
  const upstream = resources.use(await fakeUpstream({ objects: [object], stored: true }));
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  const larder = resources.use(await startLarder(flagsOf({ upstream }, storage)));
  const narinfo = await servedNarinfo(larder.port, object.storePathHash);
  const connection = resources.use(await RawConnection.open(larder.port));
  // As Nix and proxies do: the client leaves the end of the connection to larder.
  await connection.send(requestText("GET", narinfo.narPath, { "Connection": "keep-alive" }));
  gate.release(HALF + 1);
  const { status, reader } = await connection.answer();
  assert.equal(status, 200);
  const half = await reader.read(HALF);
  assert.equal(half.length, HALF);
  const owned = resources.move();
  const dispose = { [Symbol.asyncDispose]: () => owned.disposeAsync() };
  return { larder, upstream, gate, narinfo, half, reader, ...dispose };
}

function flagsOf({ upstream }: Pick<Scene, "upstream">, storage: string) {
  return {
    "cache-storage-local": storage,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
}

async function statusOf(port: number, path: string): Promise<number> {
  return (await rawRequest(port, requestText("GET", path))).status;
}

async function isRefused(port: number): Promise<boolean> {
  try {
    await using _connection = await RawConnection.open(port);
    return false;
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) return true;
    throw error;
  }
}
