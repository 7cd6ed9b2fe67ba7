import assert from "node:assert/strict";
import {
  FETCH_MS,
  type Health,
  requestsPerPath,
  UpstreamRequests,
} from "../../../scripts/chaos/upstream_requests.ts";

const WELL: Health = { isShared: true, isReadable: true };
const UNLOCKED: Health = { isShared: false, isReadable: true };
const UNREADABLE: Health = { isShared: false, isReadable: false };

const LATER_MS = FETCH_MS + 1;

interface Case {
  /** Requests for one path: what worked, and when. */
  readonly requests: readonly (readonly [Health, number])[];
  readonly counted: number;
  readonly further: number;
  readonly exempt: number;
}

const CASES: Readonly<Record<string, Case>> = {
  "each request of one fetch counts": {
    requests: [[WELL, 0], [WELL, 10], [WELL, 20]],
    ...{ counted: 1, further: 2, exempt: 0 },
  },
  "a fetch that begins without locks is exempt": {
    requests: [[UNLOCKED, 0], [UNLOCKED, 10], [WELL, 20]],
    ...{ counted: 0, further: 0, exempt: 3 },
  },
  "without locks alone, further requests count": {
    requests: [[WELL, 0], [UNLOCKED, 10]],
    ...{ counted: 1, further: 1, exempt: 0 },
  },
  "a request while nothing kept can be read is exempt": {
    requests: [[WELL, 0], [UNREADABLE, 10]],
    ...{ counted: 1, further: 0, exempt: 1 },
  },
  "a later fetch counts as further, too": {
    requests: [[WELL, 0], [WELL, LATER_MS], [WELL, LATER_MS + 10]],
    ...{ counted: 1, further: 2, exempt: 0 },
  },
  "a path that was fetched without locks may not have been kept": {
    requests: [[UNLOCKED, 0], [WELL, LATER_MS]],
    ...{ counted: 1, further: 0, exempt: 1 },
  },
};

for (const [name, { requests, ...figures }] of Object.entries(CASES)) {
  Deno.test(`chaos: ${name}`, () => {
    const noted = new UpstreamRequests();
    for (const [health, atMs] of requests) noted.note("/nar/a", health, atMs);
    const { paths, perPath, ...counts } = noted.figures(/^\/nar\//);
    assert.deepEqual([paths, perPath, counts], [1, requests.length, figures]);
    assert.equal(noted.figures(/\.narinfo$/).paths, 0);
  });
}

Deno.test("chaos: each evicted entry explains one further request", () => {
  const figures = { counted: 10, further: 5 };
  assert.equal(requestsPerPath(figures, { entries: 3, untold: 2 }), 1);
  assert.equal(requestsPerPath(figures, { entries: 3, untold: 1 }), 1.1);
  assert.equal(requestsPerPath(figures, { entries: 9, untold: 0 }), 1);
});
