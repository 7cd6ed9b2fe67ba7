import assert from "node:assert/strict";
import {
  FETCH_MS,
  type Health,
  type RequestFigures,
  UpstreamRequests,
} from "../../../scripts/chaos/upstream_requests.ts";

const WELL = { isShared: true, isReadable: true, isKept: false };
const KEPT = { ...WELL, isKept: true };
const UNLOCKED = { ...WELL, isShared: false };
const UNREADABLE = { ...UNLOCKED, isReadable: false };

const LATER_MS = FETCH_MS + 1;

interface Case {
  /** Requests for one path: the health of the servers, whether the path is kept, and the time. */
  readonly requests: readonly (readonly [Health & { readonly isKept: boolean }, number])[];
  readonly figures: Partial<RequestFigures>;
}

const CASES: Readonly<Record<string, Case>> = {
  "each request of one fetch counts": {
    requests: [[WELL, 0], [WELL, 10], [WELL, 20]],
    figures: { perFetch: 3, doubled: 2 },
  },
  "a fetch that begins without locks is exempt": {
    requests: [[UNLOCKED, 0], [UNLOCKED, 10], [WELL, 20]],
    figures: { exempt: 3 },
  },
  "without locks alone, further requests count": {
    requests: [[WELL, 0], [UNLOCKED, 10]],
    figures: { perFetch: 2, doubled: 1 },
  },
  "a request while nothing kept can be read is exempt": {
    requests: [[WELL, 0], [UNREADABLE, 10]],
    figures: { exempt: 1 },
  },
  "a request for an evicted path is another fetch": {
    requests: [[WELL, 0], [WELL, LATER_MS], [WELL, LATER_MS + 10]],
    figures: { perFetch: 1.5, doubled: 1, again: 1 },
  },
  "a request for a kept path comes twice for one fetch, however late": {
    requests: [[WELL, 0], [KEPT, LATER_MS]],
    figures: { perFetch: 2, doubled: 1 },
  },
  "a path that was fetched without locks may not have been kept": {
    requests: [[UNLOCKED, 0], [WELL, LATER_MS]],
    figures: { exempt: 1 },
  },
};

for (const [name, { requests, figures }] of Object.entries(CASES)) {
  Deno.test(`chaos: ${name}`, () => {
    const noted = new UpstreamRequests();
    for (const [facts, atMs] of requests) noted.note({ path: "/nar/a", ...facts }, atMs);
    const none = { perFetch: 1, doubled: 0, again: 0, exempt: 0 };
    const expected = { paths: 1, perPath: requests.length, ...none, ...figures };
    assert.deepEqual(noted.figures(/^\/nar\//), expected);
    assert.equal(noted.figures(/\.narinfo$/).paths, 0);
  });
}

Deno.test("chaos: a path is late 10 s after its last request", () => {
  const noted = new UpstreamRequests();
  assert.equal(noted.isLate("/nar/a", 0), false);
  noted.note({ path: "/nar/a", ...WELL }, 0);
  assert.deepEqual([noted.isLate("/nar/a", FETCH_MS), noted.isLate("/nar/a", LATER_MS)], [
    false,
    true,
  ]);
});
