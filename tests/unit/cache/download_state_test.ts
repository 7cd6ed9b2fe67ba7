import assert from "node:assert/strict";
import {
  type DownloadEvent,
  type DownloadState,
  isReleased,
  knownFileSize,
  nextState,
  readableUpTo,
} from "../../../src/cache/verify/download_state.ts";

const OPENING: DownloadState = { state: "opening" };
const RECEIVING: DownloadState = { state: "receiving", received: 5, fileSize: 9 };
const HELD: DownloadState = { state: "received", fileSize: 9, released: false };
const RELEASED: DownloadState = { state: "received", fileSize: 9, released: true };
const VERIFIED: DownloadState = { ...RELEASED, verified: true };
const KEPT: DownloadState = { state: "kept", fileSize: 9 };

const failed = (reason: string): DownloadState => ({ state: "failed", reason });

/** A state, an event, and the state that follows. */
const STEPS: readonly (readonly [DownloadState, DownloadEvent, DownloadState])[] = [
  [OPENING, { type: "lease" }, { state: "opening", isOurs: true }],
  [RECEIVING, { type: "lease" }, RECEIVING],
  [OPENING, { type: "opened" }, { state: "receiving", received: 0 }],
  [OPENING, { type: "opened", fileSize: 9 }, { state: "receiving", received: 0, fileSize: 9 }],
  [RECEIVING, { type: "opened" }, failed("opened while receiving")],
  [RECEIVING, { type: "startedOver" }, OPENING],
  [RECEIVING, { type: "bytes", received: 5 }, RECEIVING],
  [RECEIVING, { type: "bytes", received: 6 }, { ...RECEIVING, received: 6 }],
  [RECEIVING, { type: "bytes", received: 4 }, failed("bytes while receiving")],
  [OPENING, { type: "bytes", received: 1 }, failed("bytes while opening")],
  [RECEIVING, { type: "end", fileSize: 9, released: false }, HELD],
  [RECEIVING, { type: "end", fileSize: 9, released: true }, RELEASED],
  [RECEIVING, { type: "end", fileSize: 8, released: true }, failed("got 8 of 9 bytes")],
  [RECEIVING, { type: "end", fileSize: 10, released: true }, failed("got 10 of 9 bytes")],
  [{ ...RECEIVING, received: 9 }, { type: "end", fileSize: 9, released: false }, HELD],
  [
    { state: "receiving", received: 5 },
    { type: "end", fileSize: 4, released: true },
    failed("got 4 of 4 bytes"),
  ],
  [OPENING, { type: "end", fileSize: 9, released: true }, failed("end while opening")],
  [HELD, { type: "verified" }, VERIFIED],
  [RECEIVING, { type: "verified" }, failed("verified while receiving")],
  [RELEASED, { type: "kept" }, KEPT],
  [VERIFIED, { type: "kept" }, KEPT],
  [HELD, { type: "kept" }, failed("kept while received")],
  [RECEIVING, { type: "kept" }, failed("kept while receiving")],
  [RECEIVING, { type: "error", reason: "cut" }, failed("cut")],
  [RELEASED, { type: "error", reason: "cut" }, failed("cut")],
  [
    VERIFIED,
    { type: "error", reason: "full", mayPassThrough: true },
    { state: "failed", reason: "full", mayPassThrough: true, fileSize: 9 },
  ],
  [KEPT, { type: "error", reason: "late" }, KEPT],
];

Deno.test("download state: each event leads to its state, and out of order to a failure", () => {
  for (const [now, event, next] of STEPS) {
    assert.deepEqual(nextState(now, event), next, `${event.type} while ${now.state}`);
  }
});

Deno.test("download state: the last byte is held back until the check, of a part and the whole", () => {
  const states = [OPENING, { ...RECEIVING, received: 0 }, RECEIVING, HELD, RELEASED, KEPT];
  assert.deepEqual(states.map((state) => readableUpTo(state)), [0, 0, 4, 8, 9, 9]);
  assert.deepEqual(states.map((state) => readableUpTo(state, 3)), [0, 0, 2, 2, 9, 9]);
  assert.equal(readableUpTo({ ...HELD, fileSize: 0 }), 0);
  assert.equal(readableUpTo(failed("cut")), 0);
  assert.equal(readableUpTo({ state: "failed", reason: "full", fileSize: 9 }), 9);
});

Deno.test("download state: the size is known once it is announced, and bytes once they are checked", () => {
  const states = [OPENING, RECEIVING, HELD, RELEASED, KEPT, failed("cut")];
  assert.deepEqual(states.map(knownFileSize), [undefined, 9, 9, 9, 9, undefined]);
  assert.deepEqual(states.map(isReleased), [false, false, false, true, true, false]);
});
