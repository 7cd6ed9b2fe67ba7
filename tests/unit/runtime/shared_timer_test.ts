import assert from "node:assert/strict";
import { clock } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";

const DELAY_MS = 20;

Deno.test("SharedTimer: each wait gets its whole delay, whenever it began", async () => {
  const played = new VirtualClock();
  const timer = played.sharedTimer(DELAY_MS);
  const took = Promise.all([0, DELAY_MS / 4, DELAY_MS / 2].map(async (afterMs) => {
    await played.pause(afterMs);
    const startedAtMs = played.nowMs();
    await new Promise<void>((resolve) => timer.start(resolve));
    return played.nowMs() - startedAtMs;
  }));
  assert.deepEqual(await played.play(took), [DELAY_MS, DELAY_MS, DELAY_MS]);
});

Deno.test("SharedTimer: two waits that began together are over in their order", async () => {
  const timer = clock.sharedTimer(DELAY_MS);
  const over: string[] = [];
  timer.start(() => over.push("first"));
  await new Promise<void>((resolve) =>
    timer.start(() => {
      over.push("second");
      resolve();
    })
  );
  assert.deepEqual(over, ["first", "second"]);
});

Deno.test("SharedTimer: a wait that ended early is never over, and delays no other", async () => {
  const timer = clock.sharedTimer(DELAY_MS);
  const over: string[] = [];
  const early = timer.start(() => over.push("early"));
  const other = new Promise<void>((resolve) => timer.start(resolve));
  early[Symbol.dispose]();
  await other;
  assert.deepEqual(over, []);
});

Deno.test("SharedTimer: a wait may begin as another one is over", async () => {
  const timer = clock.sharedTimer(DELAY_MS);
  await new Promise<void>((resolve) => timer.start(() => timer.start(resolve)));
});

Deno.test("SharedTimer: without waits it has no timer", () => {
  const timer = clock.sharedTimer(DELAY_MS);
  // The sanitizer of the test finds a timer that is left.
  for (let count = 0; count < 2; count++) {
    using _first = timer.start(() => undefined);
    using _second = timer.start(() => undefined);
  }
});

Deno.test("SharedTimer: a timer that fires though it was cleared leaves none behind", async () => {
  using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const accepting = listener.accept();
  using client = await Deno.connect({ port: listener.addr.port });
  using server = await accepting;
  const timer = clock.sharedTimer(DELAY_MS);
  for (let count = 0; count < 5; count++) {
    const first = timer.start(() => undefined);
    const reading = server.read(new Uint8Array(1)).then(async () => {
      await undefined;
      first[Symbol.dispose]();
      return timer.start(() => undefined);
    });
    await clock.pause(1);
    await client.write(new Uint8Array(1));
    const dueAtMs = performance.now() + DELAY_MS;
    while (performance.now() < dueAtMs);
    const second = await reading;
    await clock.pause(1);
    // The sanitizer of the test finds a timer that is left.
    second[Symbol.dispose]();
  }
});
