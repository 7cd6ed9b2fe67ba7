import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { messageOf } from "../../src/base/failure.ts";
import type { Stats } from "../../src/http/stats/stats.ts";
import { EVENTS } from "../../src/telemetry/events.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { type Ending, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless } from "../support/program.ts";
import { record } from "../support/reliability_record.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const WARM = makeStoreObject({ name: "warm" });
const COLD = makeStoreObject({ name: "cold" });
const LATE = makeStoreObject({ name: "late" });

const server = PostgresServer.start();

for (const ending of ["fast", "immediate"] as const) {
  testUnless(
    postgresMissing,
    `postgres: a restart (${ending}) costs clients time, and nothing else`,
    () => restart(ending),
  );
}

/** How a database goes away, and how it comes back. */
const ABSENCES = {
  "crashed": [() => server?.stop("immediate"), () => server?.start()],
  "frozen": [() => server?.freeze(), () => server?.wake()],
} as const;

for (const [absence, [leave, back]] of Object.entries(ABSENCES)) {
  testUnless(
    postgresMissing,
    `postgres: with a ${absence} database larder serves from memory, and logs one outage`,
    async () => {
      await using scene = await Scene.open();
      using ending = new DisposableStack();
      const { larder } = scene;
      const narinfo = await servedNarinfo(larder.port, WARM.storePathHash);
      await servedNar(larder.port, narinfo);
      await larder.logged("nar cached successfully");
      assert.equal((await servedNar(larder.port, narinfo)).status, 200);

      const cold = await servedNarinfo(larder.port, LATE.storePathHash);
      const linesBefore = larder.lines.length;
      leave();
      ending.defer(back);

      for (let round = 0; round < 3; round++) {
        assert.equal(await statusOf(larder, `/${WARM.storePathHash}.narinfo`), 200);
        assert.equal((await servedNar(larder.port, narinfo)).status, 200);
        assert.equal(await statusOf(larder, "/nix-cache-info"), 200);
      }
      const statuses = await Promise.all([
        servedNar(larder.port, cold).then(({ status }) => status),
        statusOf(larder, `/${COLD.storePathHash}.narinfo`),
        statusOf(larder, `/${LATE.storePathHash}.narinfo`),
      ]);
      assert.equal(await statusOf(larder, `/nar/${"0".repeat(52)}.nar.xz`), 404);
      assert.equal(await statusOf(larder, "/pins"), 503);
      assert.deepEqual(statuses, [200, 200, 200]);
      ending.dispose();
      await larder.logged("database answers again");
      await eventually(
        "the cold path is served",
        async () => await statusOf(larder, `/${COLD.storePathHash}.narinfo`) === 200,
      );
      const events = new Set(Object.values(EVENTS).map(({ words }) => words));
      const outages = larder.lines.slice(linesBefore)
        .map(({ level, msg }) => ({ level, msg }))
        .filter(({ level, msg }) => level !== "info" || events.has(msg));
      assert.deepEqual(outages, [
        { level: "warn", msg: "database does not answer" },
        { level: "info", msg: "database answers again" },
      ]);
      assert.doesNotMatch(JSON.stringify(larder.lines), /secret/);
    },
  );
}

for (const [absence, [leave, back]] of Object.entries(ABSENCES)) {
  testUnless(
    postgresMissing,
    `postgres: a path served before is served with a ${absence} database and no upstream`,
    async () => {
      await using scene = await Scene.open();
      using ending = new DisposableStack();
      const { larder, servers: { upstream } } = scene;
      const narinfo = await servedNarinfo(larder.port, WARM.storePathHash);
      await servedNar(larder.port, narinfo);
      await larder.logged("nar cached successfully");
      // It reads what is stored as it starts, and serves nothing before the outage.
      await using other = await scene.another();
      assert.equal(await statusOf(other, "/pins"), 200);
      await upstream.stop();
      leave();
      ending.defer(back);

      for (const path of [`/${WARM.storePathHash}.narinfo`, narinfo.narPath]) {
        const answer = await fetch(larder.url + path);
        await answer.arrayBuffer();
        const { status, headers } = answer;
        assert.deepEqual([status, headers.get("x-cache")], [200, "HIT"], path);
      }
      const elsewhere = await Promise.all(
        [WARM.storePathHash, "0".repeat(32)].map((hash) => statusOf(other, `/${hash}.narinfo`)),
      );
      assert.deepEqual(elsewhere, [503, 404]);
    },
  );
}

testUnless(
  postgresMissing,
  "postgres: a pin at one larder is seen at the other, and both sign alike",
  async () => {
    await using scene = await Scene.open();
    const { larder } = scene;
    await using other = await scene.another();
    assert.equal(await pubkeyOf(other), await pubkeyOf(larder));
    assert.ok(!existsSync(`${larder.storage}/secret-key`), "the key is in the database alone");
    await servedNarinfo(larder.port, WARM.storePathHash);
    assert.deepEqual(await pinsOf(other), []);
    // The other one has started last, and so has read both reports.
    await eventually("each member is listed", async () => {
      const { members }: Stats = await (await fetch(`${other.url}/stats`)).json();
      const urls = members.map(({ is_self, state, upstreams }) => [is_self, state, upstreams.up]);
      return JSON.stringify(urls) === '[[true,"running",1],[false,"running",1]]';
    });

    const pin = `${larder.url}/pin/${WARM.storePathHash}.narinfo`;
    assert.equal((await (await fetch(pin, { method: "POST" })).bytes()).length > 0, true);

    await eventually("the pin is seen", async () => (await pinsOf(other)).length > 0);
    assert.deepEqual(await pinsOf(other), [WARM.storePathHash]);
    const page = await fetch(`${other.url}/`, { headers: { accept: "text/html" } });
    assert.match(await page.text(), /<h2 id="members-title">Members<\/h2>/);
  },
);

testUnless(
  postgresMissing,
  "postgres: a path removed at one larder leaves the other's memory",
  async () => {
    await using scene = await Scene.open();
    const { larder, servers: { upstream } } = scene;
    await using other = await scene.another({ "cache-allow-delete-verb": "true" });
    const path = `/${WARM.storePathHash}.narinfo`;
    for (const one of [other, larder, larder]) assert.equal(await statusOf(one, path), 200);
    await upstream.stop();
    assert.equal(await statusOf(larder, path), 200);

    const removed = await fetch(other.url + path, { method: "DELETE" });
    await removed.bytes();
    assert.equal(removed.status, 200);
    await eventually("it is gone", async () => await statusOf(larder, path) === 404);
  },
);

testUnless(
  postgresMissing,
  "postgres: a second larder with a storage of its own does not start, and names the first",
  async () => {
    await using scene = await Scene.open();
    using own = tempFolder();
    const said = await scene.another({ "cache-storage-local": own.path }).then(
      async (larder) => {
        await using _larder = larder;
        return "it has started";
      },
      messageOf,
    );
    assert.match(said, /Cannot use .*\/nar: .* uses this database with other NAR files; .*--adopt/);
    assert.ok(said.includes(`.${scene.larder.pid}.`), said);
  },
);

async function restart(ending: Ending): Promise<void> {
  await using scene = await Scene.open();
  const { larder, servers: { database } } = scene;
  await servedNarinfo(larder.port, WARM.storePathHash);

  database.stop(ending);
  const asked = [WARM, COLD, LATE].map(async ({ storePathHash }) => {
    const narinfo = await servedNarinfo(larder.port, storePathHash);
    return (await servedNar(larder.port, narinfo)).status;
  });
  // The start holds this thread: until larder misses the database, no request would have left.
  await larder.logged("database does not answer");
  database.start();

  assert.deepEqual(await Promise.all(asked), [200, 200, 200]);
  await eventually("all are kept", () => keptFiles(larder) === 3);
  const fault = `PostgreSQL ${ending === "fast" ? "restarts" : "crashes, and starts again"}`;
  record({ area: "members", fault, saw: "whole", kept: "nar" });
}

/** A larder on a database of its own. */
class Scene implements AsyncDisposable {
  private constructor(
    readonly larder: LarderProcess,
    readonly servers: { readonly upstream: FakeUpstream; readonly database: PostgresServer },
    readonly another: (more?: LarderFlags) => Promise<LarderProcess>,
    readonly opened: AsyncDisposable,
  ) {}

  static async open(): Promise<Scene> {
    assert.ok(server);
    await using opening = new AsyncDisposableStack();
    const objects = [WARM, COLD, LATE];
    const upstream = opening.use(await fakeUpstream({ objects, stored: true }));
    const flags = {
      "cache-storage-local": opening.use(tempFolder()).path,
      "cache-database-url": server.createDatabase(),
      "cache-max-size": "1G",
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
    };
    const another = (more: LarderFlags = {}) => startLarder({ ...flags, ...more });
    const larder = opening.use(await another());
    return new Scene(larder, { upstream, database: server }, another, opening.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.opened[Symbol.asyncDispose]();
  }
}

async function statusOf({ url }: LarderProcess, path: string): Promise<number> {
  const { status, body } = await fetch(url + path);
  await body?.cancel();
  return status;
}

async function pubkeyOf({ url }: LarderProcess): Promise<string> {
  return await (await fetch(`${url}/pubkey`)).text();
}

async function pinsOf({ url }: LarderProcess): Promise<readonly string[]> {
  return await (await fetch(`${url}/pins`)).json();
}

function keptFiles({ lines }: LarderProcess): number {
  return lines.filter(({ msg }) => msg === "nar cached successfully").length;
}
