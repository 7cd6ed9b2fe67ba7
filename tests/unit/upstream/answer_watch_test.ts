import assert from "node:assert/strict";
import { answerLimits, AnswerWatch } from "../../../src/upstream/http/answer_watch.ts";
import { SYSTEM_NET } from "../../../src/runtime/system_net.ts";
import { createUpstreamClient, dial } from "../../../src/upstream/http/http_client.ts";
import { PlayedTime } from "../../support/played_time.ts";

const LIMITS = { dialTimeoutMs: 1_000, answerTimeoutMs: 3_000 };

/** Names of the late steps, after a standstill from `atMs` on that is longer than any limit. */
async function lateAfterStandstill(atMs: number): Promise<readonly string[]> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  using client = createUpstreamClient(SYSTEM_NET, []);
  using time = new PlayedTime();
  const late: string[] = [];
  {
    const url = `http://127.0.0.1:${listener.addr.port}`;
    using _watch = new AnswerWatch({
      limits: answerLimits(LIMITS),
      onLate: ({ message }) => late.push(message),
      dial: (signal) => dial(client, url, signal),
    });
    await time.advance(atMs);
    time.standStill(10_000);
    await time.advance(0);
  }
  await time.settled();
  return late;
}

Deno.test("answers: a standstill of this process is no timeout of an upstream", async () => {
  for (const atMs of [0, 100, 500]) assert.deepEqual(await lateAfterStandstill(atMs), []);
});
