import assert from "node:assert/strict";
import { ExportQueue, Losses } from "../../../src/telemetry/otel/otel.ts";

function queueOf(send: (items: readonly number[]) => Promise<void>) {
  const lost: number[] = [];
  let outages = 0;
  const losses = new Losses({
    counter: { add: (count) => void lost.push(count) },
    lost: () => void outages++,
  });
  const queue = new ExportQueue<number>({
    send,
    dropped: (count, reason) => losses.dropped(count, reason),
    delivered: () => losses.delivered(),
    delayMs: 60_000,
  });
  return {
    queue,
    lost: () => lost.reduce((total, one) => total + one, 0),
    outages: () => outages,
  };
}

Deno.test("export queue: added items arrive in order, in batches", async () => {
  const batches: (readonly number[])[] = [];
  const { queue, lost } = queueOf(async (items) => void batches.push(items));
  const all = Array.from({ length: 1_200 }, (_, at) => at);
  all.forEach((item) => queue.add(item));
  await queue.flush();
  assert.deepEqual(batches.flat(), all);
  assert.ok(batches.every(({ length }) => length <= 512));
  assert.equal(lost(), 0);
});

Deno.test("export queue: during a stalled export it fills, and counts lost items", async () => {
  const gate = Promise.withResolvers<void>();
  let arrived = 0;
  const { queue, lost } = queueOf(async (items) => {
    await gate.promise;
    arrived += items.length;
  });
  for (let item = 0; item < 100_000; item++) queue.add(item);
  assert.ok(lost() > 90_000);
  gate.resolve();
  await queue.flush();
  assert.equal(arrived + lost(), 100_000);
});

Deno.test("export queue: a failed batch counts as lost, and the next is tried", async () => {
  let tries = 0;
  const { queue, lost } = queueOf(() =>
    ++tries === 1 ? Promise.reject(new Error("refused")) : Promise.resolve()
  );
  queue.add(1);
  await queue.flush();
  queue.add(2);
  await queue.flush();
  assert.deepEqual([tries, lost()], [2, 1]);
});

Deno.test("export queue: an outage is said once, and the next one again", async () => {
  let isAccepting = true;
  const { queue, outages } = queueOf(() =>
    isAccepting ? Promise.resolve() : Promise.reject(new Error("refused"))
  );
  const said: number[] = [];
  for (const works of [true, false, false, false, true, true, false, false]) {
    isAccepting = works;
    queue.add(1);
    await queue.flush();
    said.push(outages());
  }
  assert.deepEqual(said, [0, 1, 1, 1, 1, 1, 2, 2]);
});

Deno.test("export queue: a receiver that is too slow all the time is one outage", async () => {
  const tooMany = () => Array.from({ length: 5_000 }, (_, at) => at);
  let batches = 0;
  const { queue, lost, outages } = queueOf(async () => {
    // While each of the first ones is in flight, more than fits comes in.
    if (batches++ < 20) { for (const item of tooMany()) queue.add(item); }
  });
  queue.add(1);
  await queue.flush();
  assert.ok(lost() > 50_000);
  assert.equal(outages(), 1);
});
