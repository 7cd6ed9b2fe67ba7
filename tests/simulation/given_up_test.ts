import assert from "node:assert/strict";
import { assertSameBytes } from "../support/same_bytes.ts";
import {
  type Alteration,
  cutAt,
  endAt,
  inTurn,
  OBJECT,
  playScene,
  type Scene,
  type Seen,
  stallAt,
  startOf,
  status,
} from "./scene.ts";

const HALF = OBJECT.nar.length / 2;
/** Five such pieces are the file. */
const PIECE_BYTES = Math.ceil(OBJECT.nar.length * 0.22);
/** The half of a file comes. Then the upstream fails in one of these ways. */
const ERRORS: Readonly<Record<string, Alteration>> = {
  "cut": cutAt(HALF),
  "short": endAt(HALF),
  "reset": thenRest(cutAt(0)),
  "500": thenRest(status(500)),
  "503": thenRest(status(503, { "retry-after": "0" })),
};

/** A limit that leaves no room has the NAR passed through. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const count of [1, 2, 3]) {
    for (const [name, fault] of Object.entries(ERRORS)) {
      Deno.test(`given up: ${way}, ${name} at each of ${count} upstreams is soon over`, async () => {
        const { seen, counts, scene } = await pulled(Array(count).fill(fault), limitBytes);
        assert.deepEqual([seen.status, seen.isWhole], [200, false]);
        const requests = counts.reduce((sum, one) => sum + one, 0);
        assert.ok(requests >= 3 * count && requests <= 12, `${requests} requests`);
        assert.ok(seen.endMs < 6_000, `${seen.endMs} ms`);
        const [line, ...others] = scene.logged("nar download given up");
        assert.deepEqual([line?.level, line?.["name"], others], ["warn", "big-1.0", []]);
        assert.ok(line?.["upstream"] && line["reason"] && line["detail"]);
      });
    }
  }

  Deno.test(`given up: ${way}, busy upstreams before an error count, too`, async () => {
    const busy = status(503, { "retry-after": "0" });
    const { counts } = await pulled([busy, cutAt(0), thenRest(cutAt(0))], limitBytes);
    const requests = counts.reduce((sum, one) => sum + one, 0);
    assert.ok(requests <= 12, `${requests} requests`);
  });

  Deno.test(`given up: ${way}, a source with three errors gets no more requests`, async () => {
    const { seen, counts } = await pulled([status(500), inTurns()], limitBytes);
    assert.ok(seen.isWhole, "the other brings the file");
    assert.equal(counts[0], 3);
    assert.ok((counts[1] ?? 0) > 6, "the first could have had a fourth");
  });

  Deno.test(`given up: ${way}, beside an error a stalled upstream has its time`, async () => {
    const { seen } = await pulled([cutAt(HALF), stallAt(HALF)], limitBytes);
    assert.equal(seen.isWhole, false);
    assert.ok(seen.endMs >= 30_000 && seen.endMs < 35_000, `${seen.endMs} ms`);
  });
}

/** Too few to bring a file anywhere. */
const FEW_BYTES = 1_000;
const IDLE_MS = 30_000;
const honest: Alteration = (answer) => answer;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  Deno.test(`silent: ${way}, one that stalls after a few bytes gives way to the next`, async () => {
    const [silent, good]: [number[], number[]] = [[], []];
    const nars = [noted(silent, stallAt(FEW_BYTES)), noted(good, honest)];
    const { seen } = await pulled(nars, limitBytes);
    assert.deepEqual([seen.isWhole, seen.endMs], [true, IDLE_MS]);
    assertSameBytes(seen.bytes, OBJECT.nar);
    assert.deepEqual([silent, good], [[0], [FEW_BYTES]]);
  });

  Deno.test(`silent: ${way}, the only one gets another request after a stall`, async () => {
    const starts: number[] = [];
    const nar = noted(starts, inTurn(stallAt(FEW_BYTES), honest));
    const { seen, scene } = await pulled([nar], limitBytes);
    assert.ok(seen.isWhole);
    assert.equal(seen.endMs, IDLE_MS + pauseIn(scene));
    assertSameBytes(seen.bytes, OBJECT.nar);
    assert.deepEqual(starts, [0, FEW_BYTES]);
  });

  Deno.test(`silent: ${way}, the only one is given up at its second stall in a row`, async () => {
    const starts: number[] = [];
    const { seen, scene } = await pulled([noted(starts, stallAt(FEW_BYTES))], limitBytes);
    assert.ok(!seen.isWhole);
    assert.equal(seen.endMs, 2 * IDLE_MS + pauseIn(scene));
    assert.deepEqual(starts, [0, FEW_BYTES]);
  });
}

/** From the first silence to the second request: a pause that varies by a quarter. */
function pauseIn({ upstreams: [upstream] }: Scene): number {
  const [first, second] = upstream?.requests.filter(({ path }) => path.startsWith("/nar/")) ?? [];
  const pauseMs = (second?.atMs ?? 0) - (first?.atMs ?? 0) - IDLE_MS;
  assert.ok(pauseMs > 300 && pauseMs <= 400, `${pauseMs} ms`);
  return pauseMs;
}

/** Notes the first byte of each request. */
function noted(starts: number[], alter: Alteration): Alteration {
  return (answer, request) => {
    starts.push(startOf(request.headers));
    return alter(answer, request);
  };
}

async function pulled(nars: readonly Alteration[], limitBytes: number): Promise<{
  readonly seen: Seen;
  readonly counts: readonly number[];
  readonly scene: Scene;
}> {
  const upstreams = nars.map((nar) => ({ nar }));
  return await playScene({ upstreams, limitBytes }, async (scene) => {
    const seen = await scene.nar();
    return { seen, scene, counts: scene.counts(/^\/nar\//) };
  });
}

/** The first half for a request from the start, and the fault for a request for the rest. */
function thenRest(fault: Alteration): Alteration {
  return (answer, request) =>
    startOf(request.headers) > 0 ? fault(answer, request) : cutAt(HALF)(answer, request);
}

/** Each second request fails; the others add to the file. Five of them bring it whole. */
function inTurns(): Alteration {
  let count = 0;
  return (answer, request) => {
    const more = cutAt(startOf(request.headers) + PIECE_BYTES);
    return (count++ % 2 === 0 ? more : status(500))(answer, request);
  };
}
