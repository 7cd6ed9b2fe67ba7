import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { pushLikeNix } from "../support/pusher.ts";
import { testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { record } from "../support/reliability_record.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { type S3Fault, S3FaultProxy } from "../support/s3_fault_proxy.ts";
import { servedNar, type ServedNarinfo, servedNarinfo } from "../support/served_nar.ts";
import { filesBelow } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { pushOf } from "../support/uploading.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const TOKEN = "a-write-token-of-some-length";

const SLOW_MS = 1_500;

/** Longer than larder waits for an object. */
const STANDSTILL_MS = 6_000;

/** Too large for the memory of small files. */
const object = makeStoreObject({ name: "large", size: 1_000_000 });

testUnless(
  S3_UNAVAILABLE,
  "S3 away: NARs pass through, or are 404; the log says it once, and once that it is over",
  async () => {
    if (server === undefined) return;
    await using proxy = new FaultProxy({ targetPort: server.port });
    await using scene = await Scene.open(server.bucket(proxy.port));
    const { upstream, larder, narinfo } = scene;
    const nar = async () => {
      const { status, headers } = await servedNar(larder.port, narinfo);
      return `${status} ${headers.get("x-cache")}`;
    };
    assert.match(await nar(), /^200 (MISS|JOINED)$/);
    await larder.logged("nar cached successfully");
    assert.equal(await nar(), "200 HIT");

    proxy.isRefusing = true;
    proxy.cutAll();
    for (let times = 0; times < 3; times++) {
      assert.match(await nar(), /^200 (MISS|JOINED)$/, "it passes through");
    }
    await upstream.stop();
    assert.match(await nar(), /^(404 MISS|200 JOINED)$/);
    const info = await rawRequest(larder.port, requestText("GET", "/nix-cache-info"));
    assert.equal(info.status, 200);

    proxy.isRefusing = false;
    assert.equal(await nar(), "200 HIT");
    await larder.logged("nar store available again");
    const said = (text: string) =>
      larder.lines.filter(({ msg, level }) => msg.startsWith(text) && level !== "debug").length;
    assert.equal(said("nar store unavailable"), 1);
    assert.equal(said("nar store available"), 1);
    assert.equal(said("nars cannot be kept"), 0, "one problem for one outage");
    record({ area: "members", fault: "S3 refuses connections", saw: "whole", kept: "nar" });
  },
);

testUnless(
  S3_UNAVAILABLE,
  "S3 away: a push gets 503, not a 404 for its NAR",
  async () => {
    if (server === undefined) return;
    await using proxy = new FaultProxy({ targetPort: server.port });
    await using larder = await startLarder({
      ...s3Flags(server.bucket(proxy.port)),
      "cache-upstream-url": "http://127.0.0.1:9",
      "cache-allow-put-verb": "true",
      "cache-put-token": TOKEN,
      "cache-max-size": "1G",
    });
    const others = await Promise.all([1, 2, 3].map((number) => (
      pushOf(makeStoreObject({ name: `other-${number}`, size: 10_000 }))
    )));
    const headers = { authorization: `Bearer ${TOKEN}` };
    const put = async (path: string, body: Bytes) => {
      const answer = await fetch(larder.url + path, { method: "PUT", headers, body });
      await answer.body?.cancel();
      return answer.status;
    };
    const push = await pushOf(object);
    await pushLikeNix(larder.url, [push], { token: TOKEN });
    const statuses = async () => {
      const requests = [
        { path: push.narinfoPath, method: "GET" },
        { path: push.narPath, method: "HEAD" },
        { path: push.narinfoPath, method: "PUT", body: push.narinfo },
      ];
      return await Promise.all(requests.map(async ({ path, ...request }) => {
        const answer = await fetch(larder.url + path, { headers, ...request });
        await answer.body?.cancel();
        return answer.status;
      }));
    };
    assert.deepEqual(await statuses(), [200, 200, 200]);

    proxy.isRefusing = true;
    proxy.cutAll();
    assert.deepEqual(await statuses(), [503, 503, 503]);
    for (const { narPath, file } of others) assert.equal(await put(narPath, file.bytes), 503);
    const evictions = larder.lines.filter(({ msg }) => msg.startsWith("evict"));
    assert.deepEqual(evictions, [], "an outage evicts nothing");

    proxy.isRefusing = false;
    assert.deepEqual(await statuses(), [200, 200, 200]);
  },
);

/** Of the answer with a stored NAR. */
const S3_FAULTS: Readonly<Record<string, (fileSize: number) => S3Fault>> = {
  "S3 cuts a stored NAR halfway": (fileSize) => ({ cutAfter: fileSize / 2 }),
  "S3 answers SlowDown for a stored NAR": () => ({ status: 503, code: "SlowDown" }),
  "S3 is slow with a stored NAR": () => ({ holdUntil: clock.pause(SLOW_MS) }),
};

for (const [fault, faultOf] of Object.entries(S3_FAULTS)) {
  testUnless(S3_UNAVAILABLE, `S3 in trouble: ${fault}, and its client gets it whole`, async () => {
    if (server === undefined) return;
    await using proxy = new S3FaultProxy(server.port);
    const place = server.bucket(proxy.port);
    await using scene = await Scene.open(place);
    const { larder, narinfo } = scene;
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    await larder.logged("nar cached successfully");
    const stored = filesBelow(`${server.folderOf(place)}/nar`);
    const [fileSize = 0] = stored.values();
    let isOver = false;
    proxy.fault = ({ method, path }) => {
      if (isOver || method !== "GET" || !path.includes(".nar")) return undefined;
      isOver = true;
      return faultOf(fileSize);
    };

    assert.equal((await servedNar(larder.port, narinfo)).status, 200);

    assert.ok(isOver, "the fault has come");
    assert.deepEqual(filesBelow(`${server.folderOf(place)}/nar`), stored);
    record({ area: "members", fault, saw: "whole", kept: "nar" });
  });
}

testUnless(
  S3_UNAVAILABLE,
  "S3: a larder that was paused does not take that for the store's silence",
  async () => {
    if (server === undefined) return;
    await using proxy = new S3FaultProxy(server.port);
    await using scene = await Scene.open(server.bucket(proxy.port));
    const { upstream, larder, narinfo } = scene;
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    await larder.logged("nar cached successfully");
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    proxy.fault = ({ method }) => {
      if (method !== "HEAD") return undefined;
      isAsked();
      return { holdUntil: woken };
    };

    const answer = servedNar(larder.port, narinfo);
    await asked;
    larder.kill("SIGSTOP");
    await clock.pause(STANDSTILL_MS);
    larder.kill("SIGCONT");
    wake();

    assert.equal((await answer).headers.get("x-cache"), "HIT");
    assert.equal(upstream.count(narinfo.narPath), 1);
  },
);

/** A larder that keeps its NAR files in a bucket, and knows the narinfo of `object`. */
class Scene implements AsyncDisposable {
  readonly upstream: FakeUpstream;
  readonly larder: LarderProcess;
  readonly narinfo: ServedNarinfo;

  private constructor(parts: Pick<Scene, "upstream" | "larder" | "narinfo">) {
    ({ upstream: this.upstream, larder: this.larder, narinfo: this.narinfo } = parts);
  }

  static async open(place: S3Place): Promise<Scene> {
    await using opening = new AsyncDisposableStack();
    const upstream = opening.use(await fakeUpstream({ objects: [object], stored: true }));
    const larder = opening.use(
      await startLarder({
        ...s3Flags(place),
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
      }),
    );
    const narinfo = await servedNarinfo(larder.port, object.storePathHash);
    opening.move();
    return new Scene({ upstream, larder, narinfo });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.larder[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}
