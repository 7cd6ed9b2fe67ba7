import assert from "node:assert/strict";
import { drain, stopSignals } from "../../../src/app/lifecycle.ts";
import { PlayedTime } from "../../support/played_time.ts";

const never = () => new Promise<never>(() => {});

for (const busy of ["a request", "a download"]) {
  Deno.test(`drain: ${busy} in flight has 20 seconds to end, and no more`, async () => {
    using time = new PlayedTime();
    const warned: unknown[] = [];
    let isOver = false;
    const over = drain({
      app: { stopping() {}, downloadsOver: busy === "a download" ? never : async () => {} },
      listener: { retire() {}, shutdown: busy === "a request" ? never : async () => {} },
      service: { stopping() {} },
      log: { event: (kind, facts) => void warned.push([kind, facts]) },
      delayMs: 3_000,
    }).then(() => isOver = true);

    await time.advance(22_999);
    assert.ok(!isOver, "it has its whole time, which begins after the delay");
    assert.deepEqual(warned, []);
    await time.advance(1);
    await time.settled();
    assert.ok(isOver, "it holds up the end no longer");
    await over;
    assert.deepEqual(warned, [["requests-aborted", { limit_ms: 20_000 }]]);
  });
}

Deno.test("signals: a second Ctrl-C within half a second is the same key press", async () => {
  using time = new PlayedTime();
  const inTerminal = stopSignals(true);
  assert.equal(inTerminal("SIGINT"), "stop");
  assert.equal(inTerminal("SIGINT"), "same");
  await time.advance(499);
  assert.equal(inTerminal("SIGINT"), "same");
  assert.equal(inTerminal("SIGTERM"), 143, "no key press sends it");
  await time.advance(1);
  assert.equal(inTerminal("SIGINT"), 130);

  const elsewhere = stopSignals(false);
  assert.equal(elsewhere("SIGTERM"), "stop");
  assert.equal(elsewhere("SIGINT"), 130);
});

Deno.test("drain: without requests and downloads it is over at once", async () => {
  using time = new PlayedTime();
  const warned: unknown[] = [];
  await drain({
    app: { stopping() {}, downloadsOver: async () => {} },
    listener: { retire() {}, shutdown: async () => {} },
    service: { stopping() {} },
    log: { event: (kind) => void warned.push(kind) },
    delayMs: 0,
  });
  assert.deepEqual([time.nowMs, warned], [0, []]);
});
