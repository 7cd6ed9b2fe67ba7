import assert from "node:assert/strict";
import { SourceFailures } from "../../../src/cache/sources/source_failures.ts";

const PROGRESS_BYTES = 64 * 1024;

/** Whether the same source comes next, after each of four breaks that added so many bytes. */
function breaks(addedBytes: number): readonly boolean[] {
  const failures = new SourceFailures(30_000, 0);
  failures.begin();
  return [1, 2, 3, 4].map((atMs) =>
    failures.failed("one", { failureClass: "error", addedBytes, requests: 1, atMs })
  );
}

Deno.test("source failures: a source that makes progress sends the rest, break after break", () => {
  assert.deepEqual(breaks(PROGRESS_BYTES), [true, true, true, true]);
  assert.deepEqual(breaks(10 * PROGRESS_BYTES), [true, true, true, true]);
});

Deno.test("source failures: a source that adds little each time leaves the rest to others", () => {
  assert.deepEqual(breaks(1), [true, true, false, true]);
  assert.deepEqual(breaks(PROGRESS_BYTES - 1), [true, true, false, true]);
  assert.deepEqual(breaks(0), [false, false, false, false]);
});

Deno.test("source failures: small additions in a row are counted, not others between them", () => {
  const failures = new SourceFailures(30_000, 0);
  failures.begin();
  const goesOn = [1, 1, PROGRESS_BYTES, 1, 1, 1].map((addedBytes, atMs) =>
    failures.failed("one", { failureClass: "error", addedBytes, requests: 1, atMs })
  );
  assert.deepEqual(goesOn, [true, true, true, true, true, false]);
});

const BARREN = { addedBytes: 0, requests: 1 } as const;

Deno.test("source failures: progress gives retries their time anew", () => {
  for (const [addedBytes, goesOn] of [[PROGRESS_BYTES, true], [1, false]] as const) {
    const failures = new SourceFailures(30_000, 0);
    failures.begin();
    failures.failed("one", { ...BARREN, failureClass: "error", atMs: 0 });
    failures.failed("two", { failureClass: "error", addedBytes, requests: 1, atMs: 10_000 });
    failures.failed("one", { ...BARREN, failureClass: "error", atMs: 10_001 });
    assert.equal(failures.pauseMs(10_001) !== undefined, goesOn, `${addedBytes}`);
  }
});

Deno.test("source failures: only a stall after some bytes counts as progress", () => {
  for (const [addedBytes, goesOn] of [[1, true], [0, false]] as const) {
    const failures = new SourceFailures(30_000, 0);
    failures.begin();
    failures.failed("one", { failureClass: "timeout", addedBytes, requests: 1, atMs: 29_999 });
    assert.equal(failures.pauseMs(29_999) !== undefined, goesOn, `${addedBytes}`);
  }
});
