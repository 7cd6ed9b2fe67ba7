import assert from "node:assert/strict";
import {
  answerLimits,
  AnswerWatch,
  createUpstreamClient,
  dial,
} from "../../../src/upstream/http/upstream_fetch.ts";
import { SYSTEM_NET } from "../../../src/runtime/system_net.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
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

interface Dialed {
  readonly dialTimeoutMs?: number;
  readonly answerTimeoutMs?: number;
  readonly viaProxy?: boolean;
  /** How long the dial takes; `undefined`: for ever. */
  readonly dialMs?: number;
  /** Then the answer is there. */
  readonly answeredMs?: number;
}

/** What was late, and when, and the dials that began and ended early, in a world of its own. */
async function watched({ dialMs, answeredMs = 10_000, ...timeouts }: Dialed) {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const startedAtMs = played.nowMs();
  const since = () => played.nowMs() - startedAtMs;
  const late: (readonly [atMs: number, message: string])[] = [];
  const dials: string[] = [];
  await played.play((async () => {
    {
      using _watch = new AnswerWatch({
        limits: answerLimits({ ...LIMITS, ...timeouts }),
        onLate: ({ message }) => void late.push([since(), message]),
        dial: async (signal) => {
          dials.push(`begun at ${since()}`);
          signal.addEventListener("abort", () => dials.push(`ended at ${since()}`));
          await clock.pause(dialMs ?? 100_000);
        },
      });
      await clock.pause(answeredMs);
    }
    await clock.pause(200_000);
  })());
  assert.equal(played.pending, 0);
  return { late, dials };
}

for (
  const [what, timeouts, atMs, step] of [
    ["a dial that never ends", {}, 1_000, "connecting took over 1.0s"],
    ["a quick dial", { dialMs: 0 }, 3_000, "the answer took over 3.0s"],
    ["a dial of 99 ms", { dialMs: 99 }, 3_000, "the answer took over 3.0s"],
    ["a dial of 100 ms", { dialMs: 100 }, 3_200, "the answer took over 3.0s"],
    ["a slow dial", { dialMs: 700 }, 3_800, "the answer took over 3.0s"],
    [
      "a dial beyond the answer's limit",
      { dialMs: 90, answerTimeoutMs: 100 },
      190,
      "took over 100",
    ],
    ["a proxy", { viaProxy: true }, 3_000, "the answer took over 3.0s"],
    ["a proxy, slow dials allowed", { viaProxy: true, dialTimeoutMs: 4_000 }, 4_000, "over 4.0s"],
  ] as const
) {
  Deno.test(`answers: behind ${what}, one is late after ${atMs} ms`, async () => {
    const { late, dials } = await watched(timeouts);
    assert.deepEqual(late.map(([at]) => at), [atMs]);
    assert.ok(late[0]?.[1].includes(step), late[0]?.[1]);
    assert.equal(dials[0], "viaProxy" in timeouts ? undefined : "begun at 100");
  });
}

Deno.test("answers: one that comes in time ends the dial and every timer", async () => {
  for (
    const [answered, dials] of [
      [{ answeredMs: 99 }, []],
      [{ answeredMs: 500 }, ["begun at 100", "ended at 500"]],
      [{ answeredMs: 500, dialMs: 900 }, ["begun at 100", "ended at 500"]],
      [{ answeredMs: 2_999, dialMs: 0 }, ["begun at 100", "ended at 2999"]],
      [{ answeredMs: 2_999, viaProxy: true }, []],
    ] as const
  ) {
    assert.deepEqual(await watched(answered), { late: [], dials });
  }
});
