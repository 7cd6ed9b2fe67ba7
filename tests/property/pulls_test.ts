import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type EndedPull,
  type OpenPull,
  OpenPulls,
  SILENCE_MS,
  SLOWEST_MAX,
} from "../../src/history/pulls.ts";
import { checkProperty } from "../support/property.ts";

/** One request: it begins after a pause, and ends in some order with the others. */
const request = fc.record(
  {
    client: fc.integer({ min: 0, max: 3 }),
    pauseMs: fc.oneof(
      fc.double({ min: 0, max: 40, noNaN: true }),
      fc.integer({ min: 0, max: 2 * SILENCE_MS }),
    ),
    waitMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3_000, noNaN: true })),
    sendMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 30_000, noNaN: true })),
    path: fc.integer({ min: 0, max: 300 }),
    kind: fc.constantFrom("narinfo", "nar"),
    result: fc.constantFrom("hit", "joined", "ahead", "fetched", "absent", "uncounted"),
    bytes: fc.integer({ min: 0, max: 1 << 30 }),
  } as const,
);

type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

interface Step {
  readonly atMs: number;
  readonly run: () => void;
}

/** What the machine should say of one client: every request, at its place in time. */
interface Expected {
  readonly fromMs: number;
  readonly toMs: number;
  readonly rank: number;
}

function play(requests: readonly Request[]) {
  const pulls = new OpenPulls(() => {}, () => {});
  const steps: Step[] = [];
  const spans: Expected[][] = [[], [], [], []];
  let nowMs = 1_000;
  for (const one of requests) {
    nowMs += one.pauseMs;
    const startedAtMs = nowMs;
    const answeredAtMs = startedAtMs + one.waitMs;
    const endedAtMs = answeredAtMs + one.sendMs;
    let pull: OpenPull | undefined;
    const { client, result, bytes } = one;
    steps.push({
      atMs: startedAtMs,
      run: () => void (pull = pulls.begin(`client ${client}`, startedAtMs)),
    });
    steps.push({
      atMs: endedAtMs,
      run() {
        if (pull === undefined) return;
        if (result === "uncounted") return pull.uncounted();
        const name = `path${one.path}.nar`;
        if (result === "hit" && one.kind === "narinfo") {
          pulls.narinfoHit(pull, name, bytes, startedAtMs, endedAtMs);
        } else {
          const upstream = `http://upstream${one.path % 20}`;
          pulls.requestEnded(pull, {
            ...{ kind: one.kind, name, result, bytes, startedAtMs, answeredAtMs, endedAtMs },
            isFromUpstream: result !== "hit",
            waits: [{ upstream, fromMs: startedAtMs, toMs: endedAtMs }],
          });
        }
        const isHit = result === "hit";
        const middleMs = isHit ? startedAtMs : answeredAtMs;
        spans[client]?.push(
          { fromMs: startedAtMs, toMs: middleMs, rank: 0 },
          { fromMs: middleMs, toMs: endedAtMs, rank: isHit ? 2 : 1 },
        );
      },
    });
  }
  // What ends at a moment comes before what begins then, as in a server.
  const ended: EndedPull[] = [];
  let toldAtMs = 0;
  for (const { atMs, run } of steps.toSorted((a, b) => a.atMs - b.atMs)) {
    if (atMs - toldAtMs >= 1_000) {
      pulls.tell();
      toldAtMs = atMs;
    }
    ended.push(...pulls.ended(atMs));
    run();
  }
  pulls.tell();
  ended.push(...pulls.ended(Infinity));
  assert.equal(pulls.count, 0);
  return { ended, spans };
}

const partsOf = (pull: EndedPull) => [
  pull.waitingMs,
  pull.fetchingMs,
  pull.sendingMs,
  pull.pauseMs,
];

/** The share of each moment, found the slow way: by all begins and ends in order. */
function sweep(spans: readonly Expected[], fromMs: number, toMs: number): number[] {
  const edges = [...new Set(spans.flatMap((one) => [one.fromMs, one.toMs]))]
    .filter((at) => at >= fromMs && at <= toMs).sort((a, b) => a - b);
  const shares = [0, 0, 0, 0];
  for (const [index, from] of edges.entries()) {
    const to = edges[index + 1] ?? from;
    const ranks = spans.filter((one) => one.fromMs <= from && one.toMs >= to)
      .map(({ rank }) => rank);
    const share = Math.min(3, ...ranks);
    shares[share] = (shares[share] ?? 0) + to - from;
  }
  return shares;
}

checkProperty(
  "pulls: the parts of a pull's time equal its length, whatever the requests",
  fc.property(fc.array(request, { maxLength: 400 }), (requests) => {
    const { ended } = play(requests);
    const counted = requests.filter(({ result }) => result !== "uncounted");
    for (const pull of ended) {
      const parts = partsOf(pull);
      assert.equal(parts.reduce((sum, ms) => sum + ms), pull.ms);
      assert.ok(parts.every((ms) => ms >= 0), String(parts));
      assert.ok(pull.slowest.length <= SLOWEST_MAX);
      assert.ok(pull.upstreams.length <= 9);
    }
    const bytes = ended.reduce((sum, pull) => sum + pull.bytes, 0);
    assert.equal(bytes, counted.reduce((sum, one) => sum + one.bytes, 0), "no request is lost");
  }),
);

checkProperty(
  "pulls: each moment counts once, for the upstream before the sending before the pause",
  fc.property(fc.array(request, { maxLength: 40 }), (requests) => {
    const { ended, spans } = play(requests);
    for (const pull of ended) {
      const all = spans[Number(pull.client.at(-1))] ?? [];
      const expected = sweep(all, pull.beganAtMs, pull.beganAtMs + pull.ms + 1);
      for (const [index, part] of partsOf(pull).entries()) {
        assert.ok(Math.abs(part - (expected[index] ?? 0)) <= 2, `${partsOf(pull)} ${expected}`);
      }
    }
  }),
);

checkProperty(
  "pulls: a client is silent for ten seconds between two of its pulls",
  fc.property(fc.array(request, { maxLength: 100 }), (requests) => {
    const { ended } = play(requests);
    for (const client of new Set(ended.map((pull) => pull.client))) {
      const own = ended.filter((pull) => pull.client === client)
        .toSorted((a, b) => a.beganAtMs - b.beganAtMs);
      for (const [index, pull] of own.entries()) {
        const next = own[index + 1];
        if (next === undefined || pull.ms > 3_500_000) continue;
        assert.ok(next.beganAtMs - pull.beganAtMs - pull.ms >= SILENCE_MS - 1);
      }
    }
  }),
);
