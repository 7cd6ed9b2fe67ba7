import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { programsMissing, testUnless, testWhere } from "../support/program.ts";
import { Prometheus } from "../support/prometheus.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { scrape } from "../support/scrape.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { ROWS_ELSEWHERE } from "../support/shared_servers.ts";
import { makeStoreObject } from "../support/store_object.ts";

/** Too large for the memory of small files. */
const object = makeStoreObject({ name: "large", size: 700_000 });

const noPrometheus = programsMissing("prometheus");
const excuse = postgresMissing || redisMissing || S3_UNAVAILABLE || noPrometheus;
const postgres = excuse === "" ? PostgresServer.start() : undefined;

type Knows = (expression: string, value: number | undefined) => Promise<void>;

/** Waits until Prometheus has a value, or no series. */
function knowing(prometheus: Prometheus): Knows {
  return (expression, value) =>
    eventually(`Prometheus has ${value} for ${expression}`, async () => (
      await prometheus.query(expression) === value
    ));
}

function firing(alert: string): string {
  return `ALERTS{alertname="${alert}",alertstate="firing"}`;
}

testUnless(
  excuse,
  "back ends: Prometheus sees PostgreSQL, S3 and Redis work, end and come back, each with its alert",
  async () => {
    if (postgres === undefined) return;
    await using s3 = await S3Server.start();
    await using redis = await RedisServer.open();
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using larder = await startLarder({
      ...s3Flags(s3.bucket()),
      "cache-database-url": await postgres.createMigrated(),
      "cache-redis-addrs": redis.address,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "prometheus-enabled": "true",
    });
    await using prometheus = await Prometheus.start([`127.0.0.1:${larder.port}`], {
      firesAtOnce: true,
    });
    const knows = knowing(prometheus);
    const narinfo = await servedNarinfo(larder.port, object.storePathHash);
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    await larder.logged("nar cached successfully");
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);

    const total = "larder_backend_operations_total";
    const seen = [
      ...["database:read", "database:write", "storage:open", "storage:read", "storage:write"],
      ...["redis:acquire", "redis:free"],
    ];
    for (const one of seen) {
      const [backend, operation] = one.split(":");
      const labels = `backend="${backend}",operation="${operation}"`;
      await knows(`${total}{${labels},outcome="ok"} > bool 0`, 1);
      await knows(`larder_backend_operation_duration_seconds_sum{${labels}} > bool 0`, 1);
    }
    await knows("sum(larder_backend_up)", 3);

    const outages = [
      {
        ...{ backend: "database", alert: "LarderDatabaseDown" },
        begin: () => postgres.stop("immediate"),
        end: () => postgres.start(),
      },
      {
        ...{ backend: "storage", alert: "LarderStorageDown" },
        begin: () => s3.kill(),
        end: () => s3.revive(),
      },
      {
        ...{ backend: "redis", alert: "LarderRedisDown" },
        begin: () => redis.kill(),
        end: () => redis.start(),
      },
    ];
    for (const { backend, alert, begin, end } of outages) {
      await knows(firing(alert), undefined);
      await begin();
      await knows(`larder_backend_up{backend="${backend}"}`, 0);
      await knows(firing(alert), 1);
      await knows(`sum(${total}{backend="${backend}",outcome="failed"}) > bool 0`, 1);
      await end();
      await knows(`larder_backend_up{backend="${backend}"}`, 1);
      await knows(firing(alert), undefined);
    }
    await knows("sum(larder_backend_up)", 3);
  },
);

testWhere(
  ROWS_ELSEWHERE,
  "back ends: a file of SQLite is down while another program locks it",
  async () => {
    await using larder = await startLarder({
      "cache-upstream-url": "http://127.0.0.1:1",
      "prometheus-enabled": "true",
    });
    const get = (path: string) => fetch(larder.url + path);
    const isUp = async (value: number) =>
      await eventually(`the database's gauge is ${value}`, async () => (
        (await scrape({ get })).value('larder_backend_up{backend="database"}') === value
      ));
    await isUp(1);
    {
      using other = new DatabaseSync(`${larder.storage}/db.sqlite`);
      other.exec("PRAGMA busy_timeout = 60000");
      other.exec("BEGIN IMMEDIATE");
      await isUp(0);
    }
    await isUp(1);
  },
);

testUnless(
  noPrometheus,
  "members: Prometheus sees one killed, with its alert, and one that ends as planned, without",
  async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using replicas = await Replicas.start({ upstream, count: 2 });
    const address = `127.0.0.1:${replicas.at(0).port}`;
    await using prometheus = await Prometheus.start([address], { firesAtOnce: true });
    const knows = knowing(prometheus);
    const members = async (running: number, gone: number) => {
      await knows('larder_members{state="running"}', running);
      await knows('larder_members{state="gone"}', gone);
    };
    await members(2, 0);
    await knows(firing("LarderMemberGone"), undefined);

    Deno.kill(replicas.at(1).pid, "SIGKILL");
    await replicas.at(1).ended;
    await members(1, 1);
    await knows(firing("LarderMemberGone"), 1);

    // It takes the place of the one on this host that is gone.
    await replicas.add();
    await members(2, 0);
    await knows(firing("LarderMemberGone"), undefined);

    const endsAtMs = performance.now();
    Deno.kill(replicas.at(2).pid, "SIGTERM");
    assert.equal((await replicas.at(2).ended).code, 0);
    await members(1, 0);
    const sinceMs = Math.floor(performance.now() - endsAtMs);
    const goneSince = `max_over_time(larder_members{state="gone"}[${sinceMs}ms])`;
    assert.notEqual(await prometheus.query(goneSince), 1);
    await knows(firing("LarderMemberGone"), undefined);
  },
);
