import assert from "node:assert/strict";
import {
  EVICTED_AFTER_MS,
  type Health,
  requestProblems,
  UpstreamRequests,
} from "../../../scripts/chaos/upstream_requests.ts";

const WELL: Health = { isShared: true, isReadable: true };
const UNLOCKED: Health = { isShared: false, isReadable: true };
const UNREADABLE: Health = { isShared: false, isReadable: false };

const LATER_MS = EVICTED_AFTER_MS + 1;

interface Case {
  /** Requests for one path: what worked, and when. */
  readonly requests: readonly (readonly [Health, number])[];
  readonly perPath: number;
  readonly perCounted: number;
  readonly again: number;
  readonly exempt: number;
}

const CASES: Readonly<Record<string, Case>> = {
  "each request of one fetch counts": {
    requests: [[WELL, 0], [WELL, 10], [WELL, 20]],
    perPath: 3,
    perCounted: 3,
    ...{ again: 0, exempt: 0 },
  },
  "a fetch that begins without locks is exempt": {
    requests: [[UNLOCKED, 0], [UNLOCKED, 10], [WELL, 20]],
    perPath: 3,
    perCounted: 0,
    ...{ again: 0, exempt: 3 },
  },
  "without locks alone, further requests count": {
    requests: [[WELL, 0], [UNLOCKED, 10]],
    perPath: 2,
    perCounted: 2,
    ...{ again: 0, exempt: 0 },
  },
  "a request while nothing kept can be read is exempt": {
    requests: [[WELL, 0], [UNREADABLE, 10]],
    perPath: 2,
    perCounted: 1,
    ...{ again: 0, exempt: 1 },
  },
  "a request after the time of an eviction is another fetch": {
    requests: [[WELL, 0], [WELL, LATER_MS], [WELL, LATER_MS + 10]],
    perPath: 3,
    perCounted: 1.5,
    ...{ again: 1, exempt: 0 },
  },
  "a path that was fetched without locks may not have been kept": {
    requests: [[UNLOCKED, 0], [WELL, LATER_MS]],
    perPath: 2,
    perCounted: 1,
    ...{ again: 0, exempt: 1 },
  },
};

for (const [name, { requests, ...figures }] of Object.entries(CASES)) {
  Deno.test(`chaos: ${name}`, () => {
    const noted = new UpstreamRequests();
    for (const [health, atMs] of requests) noted.note("/nar/a", health, atMs);
    assert.deepEqual(noted.figures(/^\/nar\//), { paths: 1, ...figures });
    assert.equal(noted.figures(/\.narinfo$/).paths, 0);
  });
}

Deno.test("chaos: fetches again need as many evictions", () => {
  const figures = { perCounted: 1, again: 5 };
  assert.deepEqual(requestProblems("NAR", figures, { entries: 3, untold: 2 }), []);
  assert.deepEqual(requestProblems("NAR", figures, { entries: 3, untold: 1 }), [
    "NAR: fetched again 5 times, but evicted 3 times",
  ]);
});

Deno.test("chaos: more than 1.05 requests for each fetch are a problem", () => {
  const evictions = { entries: 0, untold: 0 };
  assert.deepEqual(requestProblems("NAR", { perCounted: 1.05, again: 0 }, evictions), []);
  assert.equal(requestProblems("NAR", { perCounted: 1.06, again: 0 }, evictions).length, 1);
});
