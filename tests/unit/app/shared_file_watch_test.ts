import assert from "node:assert/strict";
import { SharedFileWatch } from "../../../src/app/stores.ts";
import { newMemberId } from "../../../src/base/member_id.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";

const HOLDS = { reservedBytes: 0, limitBytes: Infinity };
const WARNING = "sqlite-file-shared";

const rows: readonly (readonly [who: string, host: string, beats: boolean, warned: string[]])[] = [
  ["a living larder of another host", "two", true, [WARNING]],
  ["a dead larder of another host", "two", false, []],
  ["a living larder of the same host", "one", true, []],
];

for (const [who, host, beats, warned] of rows) {
  Deno.test(`shared file: ${who} is ${warned.length} warnings`, async () => {
    let nowMs = 1_000_000;
    const ledger = new MemoryMetadataStore(() => nowMs);
    const [member, other] = [newMemberId("one", 1), newMemberId(host, 2)];
    const said: string[] = [];
    const log = { event: (kind: string) => void said.push(kind) };
    await ledger.beat(other, HOLDS);
    const parts = { ledger, member, hostname: "one", nowMs: () => nowMs, log };
    const watch = new SharedFileWatch(parts);
    for (let seconds = 0; seconds <= 25; seconds += 5) {
      await ledger.beat(member, HOLDS);
      if (beats) await ledger.beat(other, HOLDS);
      await watch.warnIfShared();
      nowMs += 5_000;
    }
    assert.deepEqual(said, warned);
  });
}
