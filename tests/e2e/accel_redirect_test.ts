import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";

const excuse = programsMissing("nginx");

const DOCUMENT = new URL("../../docs/reverse-proxy.md", import.meta.url);
/** Larger than the files that larder keeps in memory. */
const OBJECT = makeStoreObject({ name: "large-1.0", size: 1_000_000 });

testUnless(excuse, "accel: nginx sends a kept NAR, and larder counts and logs it", async () => {
  await using scene = await Scene.open(OBJECT);
  const { bytes, path } = scene;
  const servedBefore = await scene.servedBytes();
  const answer = await scene.get(path);
  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), bytes);
  assert.equal(answer.headers.get("x-cache"), "HIT");
  assert.equal(answer.headers.get("content-type"), "application/x-nix-nar");
  assert.match(answer.headers.get("cache-control") ?? "", /immutable/);
  assert.match(answer.headers.get("etag") ?? "", /^"[0-9a-z]+"$/);
  assert.equal(answer.headers.get("x-accel-redirect"), null);
  assert.equal(await scene.isHandedOver(path), true);
  await eventually("larder has logged it", async () => {
    const line = scene.larder.lines.findLast((line) => line["path"] === path);
    return line?.msg === "serving nar from cache" && line["status"] === 200 &&
      line["bytes"] === bytes.length;
  });
  // By nginx, and by `isHandedOver`. larder counts once the bytes are with the kernel.
  await eventually("both are counted", async () => (
    await scene.servedBytes() - servedBefore === 2 * bytes.length
  ));
});

testUnless(excuse, "accel: ranges, HEAD and If-None-Match are as without it", async () => {
  await using scene = await Scene.open(OBJECT);
  const { bytes, path, larder } = scene;
  const direct = await fetch(`${larder.url}${path}`, { method: "HEAD" });
  const etag = direct.headers.get("etag") ?? "";
  const part = await scene.get(path, { Range: "bytes=10-19" });
  assert.equal(part.status, 206);
  assert.equal(part.headers.get("content-range"), `bytes 10-19/${bytes.length}`);
  assertSameBytes(await part.bytes(), bytes.slice(10, 20));
  const rest = await scene.get(path, { Range: `bytes=${bytes.length - 5}-` });
  assert.deepEqual([rest.status, await rest.bytes()], [206, bytes.slice(-5)]);
  const beyond = await scene.get(path, { Range: `bytes=${bytes.length}-` });
  await beyond.body?.cancel();
  assert.equal(beyond.status, 416);
  const known = await scene.get(path, { "If-None-Match": etag });
  assert.deepEqual([known.status, await known.text()], [304, ""]);
  const head = await fetch(`${scene.url}${path}`, { method: "HEAD" });
  for (const name of ["content-length", "etag", "x-cache", "content-type"]) {
    assert.equal(head.headers.get(name), direct.headers.get(name), name);
  }
});

testUnless(excuse, "accel: a NAR that nginx sends has a use", async () => {
  await using scene = await Scene.open(OBJECT);
  using database = new DatabaseSync(`${scene.larder.storage}/db.sqlite`, { readOnly: true });
  const lastUse = () =>
    Number(database.prepare("SELECT max(used_at_ms) AS last FROM narinfo_use").get()?.["last"]);
  const sentAtMs = Date.now();

  await (await scene.get(scene.path)).bytes();

  await eventually("the use is written", () => lastUse() >= sentAtMs);
});

testUnless(excuse, "accel: without the header a client gets the bytes from larder", async () => {
  await using scene = await Scene.open(OBJECT);
  const { bytes, path, larder } = scene;
  const answer = await fetch(`${larder.url}${path}`);
  assertSameBytes(await answer.bytes(), bytes);
  assert.equal(answer.headers.get("x-accel-redirect"), null);
});

testUnless(
  excuse,
  "accel: a client without a proxy in front gets the bytes from larder",
  async () => {
    await using scene = await Scene.open(OBJECT, "192.0.2.1");
    assert.equal(await scene.isHandedOver(scene.path), false);
  },
);

/** A larder with one kept NAR, behind an nginx with the lines of the documents. */
class Scene implements AsyncDisposable {
  readonly path: string;
  readonly bytes: Bytes;
  readonly larder: Awaited<ReturnType<typeof startLarder>>;
  readonly #front: NginxFront;
  readonly #closing: AsyncDisposableStack;

  private constructor(
    parts: Pick<Scene, "path" | "bytes" | "larder">,
    front: NginxFront,
    closing: AsyncDisposableStack,
  ) {
    ({ path: this.path, bytes: this.bytes, larder: this.larder } = parts);
    this.#front = front;
    this.#closing = closing;
  }

  static async open(object: StoreObject, proxy = "127.0.0.1"): Promise<Scene> {
    await using opening = new AsyncDisposableStack();
    const upstream = opening.use(await fakeUpstream({ objects: [object], stored: true }));
    const larder = opening.use(
      await startLarder({
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
        "server-trusted-proxies": proxy,
        "server-accel-redirect": "/larder-nars/",
        "prometheus-enabled": "true",
      }),
    );
    const narinfo = await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
    const path = `/${/^URL: (.*)$/m.exec(narinfo)?.[1]}`;
    const { bytes } = await upstream.narFileOf(object);
    await eventually("the NAR is kept", async () => {
      const answer = await fetch(`${larder.url}${path}`);
      await answer.bytes();
      return answer.headers.get("x-cache") === "HIT";
    });
    const lines = documented()
      .replace("http://127.0.0.1:8501", `http://127.0.0.1:${larder.port}`)
      .replace("/var/lib/larder/nar/", `${larder.storage}/nar/`);
    const front = opening.use(await NginxFront.open(larder.port, lines));
    return new Scene({ path, bytes, larder }, front, opening.move());
  }

  get url(): string {
    return `http://127.0.0.1:${this.#front.port}`;
  }

  get(path: string, headers: HeadersInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, { headers });
  }

  /** True if larder names the file to any client that sends nginx's header. */
  async isHandedOver(path: string): Promise<boolean> {
    const headers = { "X-Sendfile-Type": "X-Accel-Redirect" };
    const answer = await fetch(`${this.larder.url}${path}`, { headers });
    const { length } = await answer.bytes();
    const place = answer.headers.get("x-accel-redirect");
    assert.equal(length, place === null ? this.bytes.length : 0);
    return place?.startsWith("/larder-nars/") ?? false;
  }

  /** Bytes of hits that larder has counted. */
  async servedBytes(): Promise<number> {
    const metrics = await (await fetch(`${this.larder.url}/metrics`)).text();
    const found = /larder_served_bytes_total\{kind="nar",source="hit"\} (\d+)/.exec(metrics);
    return Number(found?.[1]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing.disposeAsync();
  }
}

/** The lines for nginx. */
function documented(): string {
  const text = Deno.readTextFileSync(DOCUMENT);
  const lines = /^## nginx sends the stored NARs$.*?```nginx\n(.*?)```/ms.exec(text)?.[1];
  assert.ok(lines);
  return lines;
}
