import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type DownloadEvent,
  type DownloadState,
  isReleased,
  knownFileSize,
  nextState,
  readableUpTo,
} from "../../src/cache/verify/download_state.ts";
import { checkProperty } from "../support/property.ts";

const size = fc.integer({ min: 0, max: 1_000 });
const event: fc.Arbitrary<DownloadEvent> = fc.oneof(
  fc.constant<DownloadEvent>({ type: "opened" }),
  size.map((fileSize): DownloadEvent => ({ type: "opened", fileSize })),
  size.map((received): DownloadEvent => ({ type: "bytes", received })),
  fc.tuple(size, fc.boolean()).map(([fileSize, released]): DownloadEvent => ({
    type: "end",
    fileSize,
    released,
  })),
  fc.constant<DownloadEvent>({ type: "verified" }),
  fc.constant<DownloadEvent>({ type: "startedOver" }),
  fc.constant<DownloadEvent>({ type: "kept" }),
  fc.constant<DownloadEvent>({ type: "error", reason: "cut" }),
);

function story(events: readonly DownloadEvent[]): readonly DownloadState[] {
  const states: DownloadState[] = [{ state: "opening" }];
  for (const one of events) states.push(nextState(states.at(-1) ?? { state: "opening" }, one));
  return states;
}

checkProperty(
  "download: nothing leads out of kept and failed",
  fc.property(fc.array(event), (events) => {
    const states = story(events);
    const final = states.findIndex(({ state }) => state === "kept" || state === "failed");
    if (final < 0) return;
    for (const later of states.slice(final)) assert.deepEqual(later, states[final]);
  }),
);

checkProperty(
  "download: the last byte, of the whole or of a part, is readable only after a check result",
  fc.property(fc.array(event), fc.integer({ min: 1, max: 1_000 }), (events, end) => {
    for (const state of story(events)) {
      if (isReleased(state)) continue;
      assert.ok(readableUpTo(state, end) < end);
      const size = state.state === "receiving" ? state.received : knownFileSize(state) ?? 0;
      if (size > 0) assert.ok(readableUpTo(state) < size);
    }
  }),
);

checkProperty(
  "download: readable bytes stay readable until it fails, or starts over",
  fc.property(fc.array(event), (events) => {
    const states = story(events);
    for (const [at, state] of states.entries()) {
      const before = states[at - 1];
      if (before === undefined || state.state === "failed") continue;
      if (events[at - 1]?.type === "startedOver") continue;
      assert.ok(readableUpTo(state) >= readableUpTo(before));
    }
  }),
);

checkProperty(
  "download: it is kept only whole: opened, ended at the announced size, verified",
  fc.property(fc.array(event), (events) => {
    const states = story(events);
    const keptAt = states.findIndex(({ state }) => state === "kept");
    if (keptAt < 0) return;
    const before = events.slice(0, keptAt);
    const last = before.slice(before.findLastIndex(({ type }) => type === "startedOver") + 1);
    const opened = last.find(({ type }) => type === "opened");
    const end = last.find(({ type }) => type === "end");
    assert.ok(opened?.type === "opened" && end?.type === "end");
    assert.equal(opened.fileSize ?? end.fileSize, end.fileSize);
  }),
);

checkProperty(
  "download: a failure leaves a file readable only if it is verified",
  fc.property(fc.array(event), (events) => {
    const states = story(events);
    const failedAt = states.findIndex(({ state }) => state === "failed");
    const failed = states[failedAt];
    if (failed === undefined) return;
    const begun = events.slice(0, failedAt);
    const last = begun.slice(begun.findLastIndex(({ type }) => type === "startedOver") + 1);
    const isVerified = last.some(({ type }) => type === "verified");
    const isStoring = events[failedAt - 1]?.type === "error" && isVerified;
    assert.equal(isReleased(failed), isStoring);
    assert.equal(readableUpTo(failed) > 0, isStoring && (knownFileSize(failed) ?? 0) > 0);
  }),
);
