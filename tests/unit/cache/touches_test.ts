import assert from "node:assert/strict";
import { Touches } from "../../../src/cache/touches.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { hash } from "../../support/metadata_rows.ts";

Deno.test("uses: many are written in transactions that stop the thread for a moment", async () => {
  const { touches, written } = open();
  for (let at = 0; at < 1_000; at++) touches.narinfo(hash(`path ${at}`));
  await touches.flush();
  assert.ok(Math.max(...written.map((changes) => changes.length)) <= 64);
  assert.equal(new Set(written.flat().map(pathOf)).size, 1_000);
  await touches[Symbol.asyncDispose]();
});

Deno.test("uses: those that cannot be written are one line in the log, and given up", async () => {
  const { touches, written, lines } = open({ failsAt: 2 });
  for (let at = 0; at < 1_000; at++) touches.narinfo(hash(`path ${at}`));
  await touches.flush();
  assert.equal(written.length, 1);
  const left = 1_000 - (written[0]?.length ?? 0);
  assert.deepEqual(lines.map(({ msg, count }) => [msg, count]), [["touches not written", left]]);
  await touches[Symbol.asyncDispose]();
});

function open({ failsAt = Infinity } = {}) {
  const written: (readonly Change[])[] = [];
  const lines: { readonly msg: string; readonly count: number }[] = [];
  const touches = new Touches({
    metadata: {
      apply: async (changes) => {
        if (written.length + 1 >= failsAt) throw new Error("the disk is full");
        written.push(changes);
      },
    },
    nowMs: () => 1,
    log: createLogger("debug", { write: (line) => void lines.push(JSON.parse(line)) }),
  });
  return { touches, written, lines };
}

function pathOf(change: Change): string {
  return change.kind === "touch-narinfo" ? change.storePathHash : "";
}
