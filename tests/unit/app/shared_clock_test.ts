import assert from "node:assert/strict";
import { SharedClock } from "../../../src/app/stores.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

const HOUR_MS = 3_600_000;

/** A machine and a database with clocks of their own. */
class TwoClocks {
  machineMs = 1_000_000_000_000;
  databaseMs = 1_000_000_000_000;
  /** How long the database takes for its answer. */
  delayMs = 0;
  isUnavailable = false;
  readonly lines: Record<string, unknown>[] = [];
  readonly shared = new SharedClock({
    board: { sharedNowMs: () => this.#ask() },
    nowMs: () => this.machineMs,
    log: createLogger("info", { write: (line) => void this.lines.push(JSON.parse(line)) }),
  });

  #ask(): Promise<number> {
    if (this.isUnavailable) return Promise.reject(new Error("away"));
    const atMs = this.databaseMs + this.delayMs / 2;
    this.machineMs += this.delayMs;
    this.databaseMs += this.delayMs;
    return Promise.resolve(atMs);
  }
}

Deno.test("shared clock: a wrong clock takes the database's time, said once", async () => {
  const clocks = new TwoClocks();
  clocks.machineMs += 2 * HOUR_MS;
  await clocks.shared.measure();
  assert.equal(clocks.shared.nowMs(), clocks.databaseMs);
  await clocks.shared.measure();
  clocks.machineMs -= 2 * HOUR_MS;
  await clocks.shared.measure();
  assert.equal(clocks.shared.nowMs(), clocks.databaseMs);
  const told = clocks.lines.map(({ level, msg, ahead_s }) => [level, msg, ahead_s]);
  assert.deepEqual(told, [
    ["warn", "clock differs from the database's", 7_200],
    ["info", "clock agrees with the database's again", 0],
  ]);
});

Deno.test("shared clock: the delay of an answer moves no time", async () => {
  const clocks = new TwoClocks();
  clocks.delayMs = 8_000;
  await clocks.shared.measure();
  clocks.databaseMs += 900;
  await clocks.shared.measure();
  assert.equal(clocks.shared.nowMs(), clocks.machineMs);
  assert.deepEqual(clocks.lines, []);
});

Deno.test("shared clock: while the database is away, the last difference stays", async () => {
  const clocks = new TwoClocks();
  clocks.machineMs -= HOUR_MS;
  await clocks.shared.measure();
  clocks.isUnavailable = true;
  await clocks.shared.measure();
  assert.equal(clocks.shared.nowMs(), clocks.databaseMs);
});
