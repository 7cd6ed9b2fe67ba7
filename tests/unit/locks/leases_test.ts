import assert from "node:assert/strict";
import type { MemberId } from "../../../src/base/member_id.ts";
import { LeaseMetrics } from "../../../src/locks/lease_metrics.ts";
import { Leases } from "../../../src/locks/leases.ts";
import type { Locks } from "../../../src/locks/locks.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../../src/telemetry/tracer.ts";
import { PlayedTime } from "../../support/played_time.ts";

const OTHER = "host.1.other" as MemberId;

/** Another member has every lock. */
const HELD: Locks = {
  tryAcquire: () => Promise.resolve(undefined),
  holderOf: () => Promise.resolve({ member: OTHER, token: "" }),
  free: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

Deno.test("leases: while another member evicts, the log says so every ten seconds", async () => {
  using time = new PlayedTime();
  const levels: string[] = [];
  const write = (line: string) => {
    const { level, msg } = JSON.parse(line);
    if (msg === "another instance is running LRU") levels.push(level);
  };
  const leases = new Leases({
    locks: HELD,
    ownLocks: undefined,
    self: { member: "host.1.self" as MemberId },
    isGone: () => Promise.resolve(false),
    metrics: new LeaseMetrics(new Metrics()),
    tracer: NO_TRACER,
    log: createLogger("debug", { write }),
  });
  const patience = { retriesMax: 0, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false };
  for (let attempt = 0; attempt < 45; attempt++) {
    const { kind } = await leases.take({ lockType: "lru", ttlMs: 1_000, patience });
    assert.equal(kind, "theirs");
    await time.advance(250);
  }
  const told = levels.flatMap((level, at) => level === "info" ? [at] : []);
  assert.deepEqual([told, levels.length], [[0, 40], 45]);
});
