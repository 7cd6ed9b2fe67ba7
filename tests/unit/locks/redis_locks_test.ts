import assert from "node:assert/strict";
import { LocksUnavailable } from "../../../src/locks/locks.ts";
import { connectRedis } from "../../../src/locks/redis/redis_client.ts";
import { RedisLocks } from "../../../src/locks/redis/redis_locks.ts";
import { clock } from "../../../src/runtime/current.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { eventually } from "../../support/eventually.ts";
import { testUnless } from "../../support/program.ts";
import { openRedisLocks } from "../../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../../support/redis_server.ts";

const TTL_MS = 60_000;
const DISCONNECT_MAX_MS = 2_100;

testUnless(
  redisMissing,
  "redis locks: a frozen Redis costs two time limits, then none",
  async () => {
    await using server = await RedisServer.open();
    const messages: string[] = [];
    const log = createLogger("info", { write: (line) => void messages.push(JSON.parse(line).msg) });
    await using locks = await openRedisLocks(server.address, { log });
    server.freeze();

    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(locks.tryAcquire("a", TTL_MS), isUnavailable("redis_error"));
    }
    await assert.rejects(locks.tryAcquire("b", TTL_MS), isUnavailable("circuit_breaker"));
    await assert.rejects(locks.holderOf("b"), isUnavailable("circuit_breaker"));
    assert.deepEqual(messages, ["circuit breaker open: Redis is unavailable"]);

    server.wake();
    await eventually("the circuit is closed", () => messages.length === 2);
    assert.equal(messages[1], "circuit breaker closed: Redis is available again");
    // Redis may have run a command that it had not answered.
    await eventually("nobody holds the lock that nobody got", async () => (
      await locks.holderOf("a") === undefined
    ));
    await using lease = await locks.tryAcquire("a", TTL_MS);
    assert.ok(lease);
  },
);

testUnless(
  redisMissing,
  "redis locks: a Redis that answers nothing but PING keeps the circuit open",
  async () => {
    await using server = await RedisServer.open();
    const messages: string[] = [];
    const log = createLogger("info", { write: (line) => void messages.push(JSON.parse(line).msg) });
    await using locks = await openRedisLocks(server.address, { log });
    const refused = () => (
      Number(/errorstat_NOPERM:count=(\d+)/.exec(server.ask("INFO", "errorstats"))?.[1] ?? 0)
    );
    // As the keys of one node of a cluster are away, and other nodes answer.
    server.ask("ACL", "SETUSER", "default", "resetkeys");
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(locks.tryAcquire("a", TTL_MS), isUnavailable("redis_error"));
    }
    const before = refused();
    await eventually("two probes fail", () => messages.length > 1 || refused() >= before + 2);
    assert.deepEqual(messages, ["circuit breaker open: Redis is unavailable"]);

    server.ask("ACL", "SETUSER", "default", "allkeys");
    await eventually("the circuit is closed", () => messages.length === 2);
    await using lease = await locks.tryAcquire("a", TTL_MS);
    assert.ok(lease);
  },
);

testUnless(
  redisMissing,
  "redis locks: the reason of a failure is not an earlier one",
  async () => {
    await using server = await RedisServer.open();
    const lines: { readonly msg: string; readonly error?: string }[] = [];
    const log = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
    const addresses = [{ host: "127.0.0.1", port: server.port }];
    const connection = await connectRedis({ addresses, db: 0 }, log);
    await using locks = new RedisLocks({
      ...{ connection, keyPrefix: "", holder: { member: "host.1.one" }, log },
      storageId: () => Promise.resolve(undefined),
    });
    // A cluster tells of a node that is away, and not of its return.
    connection.client.emit("error", new Error("a node was away"));
    assert.match(String(connection.failure()), /a node was away/);
    await (await locks.tryAcquire("a", TTL_MS))?.[Symbol.asyncDispose]();

    server.freeze();
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(locks.tryAcquire("a", TTL_MS), isUnavailable("redis_error"));
    }
    const opened = lines.find(({ msg }) => msg === "circuit breaker open: Redis is unavailable");
    assert.match(opened?.error ?? "", /timed out/);
    server.wake();
  },
);

testUnless(redisMissing, "redis locks: a wrong password is logged, a right one works", async () => {
  await using server = await RedisServer.open({ words: ["--requirepass", "right"] });
  const LOGINS = [["wrong", /^WRONGPASS/], [undefined, /^NOAUTH/]] as const;
  for (const [password, reason] of LOGINS) {
    const lines: { readonly error: string; readonly hint: string }[] = [];
    const log = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
    const login = password === undefined ? {} : { password };
    await using locks = await openRedisLocks(server.address, { log, ...login });
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(locks.tryAcquire("a", TTL_MS), isUnavailable("redis_error"));
    }
    const [{ error = "", hint = "" } = {}] = lines;
    assert.match(error, reason);
    assert.match(hint, /--cache-redis-password, or its -file/);
  }
  await using locks = await openRedisLocks(server.address, { password: "right" });
  await using lease = await locks.tryAcquire("a", TTL_MS);
  assert.ok(lease);
  // The client's own timer for a connection that was closed already.
  await clock.pause(DISCONNECT_MAX_MS);
});

testUnless(
  redisMissing,
  "redis locks: strange values of a lock name nobody, and open no circuit",
  async () => {
    await using server = await RedisServer.open();
    const messages: string[] = [];
    const log = createLogger("info", { write: (line) => void messages.push(JSON.parse(line).msg) });
    await using locks = await openRedisLocks(server.address, { log });
    server.ask("RPUSH", "list", "x");
    server.ask("HSET", "hash", "member", "x");
    server.ask("SET", "empty", "");
    server.ask("SET", "number", "7");
    server.ask("SET", "null", "null");
    server.ask("SETRANGE", "huge", String(64 << 20), "x");
    const names = ["list", "hash", "empty", "number", "null", "huge"];
    const before = sentBytes(server);
    for (let tries = 0; tries < 4; tries++) {
      for (const name of names) {
        assert.equal(await locks.tryAcquire(name, TTL_MS), undefined);
        assert.equal(await locks.holderOf(name), undefined);
      }
    }
    assert.ok(sentBytes(server) - before < 1 << 20, "a huge value came whole");
    await using lease = await locks.tryAcquire("free", TTL_MS);
    assert.ok(lease);
    // Its value is taken away, and another type put there.
    server.ask("DEL", "free");
    server.ask("RPUSH", "free", "x");
    await lease[Symbol.asyncDispose]();
    assert.deepEqual(messages, []);
  },
);

testUnless(redisMissing, "redis locks: a killed Redis that starts again gives locks", async () => {
  await using server = await RedisServer.open();
  await using locks = await openRedisLocks(server.address);
  await using before = await locks.tryAcquire("a", TTL_MS);
  assert.ok(before);
  await server.kill();
  await assert.rejects(locks.tryAcquire("a", TTL_MS), isUnavailable("redis_error"));
  await server.start();

  await eventually("a lock is given", async () => {
    try {
      await using lease = await locks.tryAcquire("a", TTL_MS);
      return lease !== undefined;
    } catch {
      return false;
    }
  });
});

testUnless(
  redisMissing,
  "redis locks: the lock of a dead holder is free after its time",
  async () => {
    await using server = await RedisServer.open();
    await using locks = await openRedisLocks(server.address);
    // The holder renews it in time, on a busy machine too.
    const ttlMs = 1_000;
    const script = new URL("../../support/lock_holder.ts", import.meta.url).pathname;
    const args = ["run", "-A", "--cached-only", script, server.address, "a", `${ttlMs}`];
    const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
    const reader = child.stdout.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "held\n");
    assert.equal(await locks.tryAcquire("a", ttlMs), undefined);
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();

    await eventually("the lock is free", async () => {
      await using lease = await locks.tryAcquire("a", ttlMs);
      return lease !== undefined;
    });
  },
);

testUnless(redisMissing, "redis locks: a holder learns that another has its lock", async () => {
  await using server = await RedisServer.open();
  await using one = await openRedisLocks(server.address);
  await using other = await openRedisLocks(server.address);
  // The next holder renews it in time, on a busy machine too.
  const ttlMs = 3_000;
  await using lease = await one.tryAcquire("a", ttlMs);
  const holder = await other.holderOf("a");
  assert.ok(lease && holder);

  await other.free("a", holder);
  await using next = await other.tryAcquire("a", ttlMs);
  assert.ok(next);

  await eventually("the lease is lost", () => lease.lost.aborted);
  assert.equal(next.lost.aborted, false);
});

function sentBytes(server: RedisServer): number {
  return Number(/total_net_output_bytes:(\d+)/.exec(server.ask("INFO", "stats"))?.[1]);
}

function isUnavailable(reason: string) {
  return (error: unknown) => error instanceof LocksUnavailable && error.reason === reason;
}
