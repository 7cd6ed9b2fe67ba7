import assert from "node:assert/strict";
import fc from "fast-check";
import { converse, HonestClient } from "../support/conversing.ts";
import { mutated, wellFormed } from "../support/http_grammar.ts";
import { smuggling } from "../support/http_smuggling.ts";
import { startLarder } from "../support/larder_process.ts";
import { tryForTime } from "../support/property.ts";
import { resetConnections } from "../support/resets.ts";

const RESETS = { count: 1_000_000, perSecond: 60 };

const manner = fc.record({
  cuts: fc.array(fc.nat(2_000), { maxLength: 6 }),
  pauseMs: fc.constantFrom(0, 0, 0, 1, 3),
  end: fc.constantFrom("half close", "half close", "half close", "leaves"),
});
const conversations = fc.array(
  fc.tuple(fc.oneof(wellFormed, smuggling, mutated), manner),
  { minLength: 1, maxLength: 8 },
);

Deno.test("wire: whatever comes, nothing is smuggled or breaks, and all are answered", async () => {
  await using larder = await startLarder({ "cache-upstream-url": [] });
  const { port } = larder;
  const over = new AbortController();
  const resets = resetConnections(port, { ...RESETS, signal: over.signal });
  const honest = new HonestClient(port);
  let conversationCount = 0;
  try {
    await tryForTime(conversations, async (all) => {
      await Promise.all(all.map(([what, how]) => converse(port, what, how)));
      honest.check();
      conversationCount += all.length;
    });
  } finally {
    over.abort();
    await resets;
  }
  const { count, slowestMs } = await honest.over();
  console.log(`${conversationCount} conversations beside ${count} honest requests`);
  console.log(`The slowest honest request took ${slowestMs.toFixed(0)} ms`);
  const serious = larder.lines.filter(({ level }) => level === "error");
  assert.deepEqual(serious, []);
  larder.kill("SIGTERM");
  assert.equal((await larder.ended).code, 0);
});
