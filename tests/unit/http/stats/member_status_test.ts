import assert from "node:assert/strict";
import fc from "fast-check";
import {
  formatStatus,
  MEMBER_DOWNLOADS_MAX,
  parseStatus,
} from "../../../../src/http/stats/member_status.ts";
import { STATUS_BYTES_MAX } from "../../../../src/metadata/member_board.ts";
import { checkProperty } from "../../../support/property.ts";
import { REPORTED } from "../../../support/reported_members.ts";

Deno.test("member status: a member reads the status that another formats", () => {
  assert.deepEqual(parseStatus(formatStatus(REPORTED)), REPORTED);
});

Deno.test("member status: a long one loses downloads, not its form", () => {
  const name = "\u{1F4E6}".repeat(100);
  const download = { nar: "n", name, received_bytes: 1, file_bytes: 2 };
  const under_way = Array.from({ length: MEMBER_DOWNLOADS_MAX }, () => ({
    ...{ ...download, nar: "x".repeat(1_000) },
  }));
  const text = formatStatus({ ...REPORTED, downloads: { count: 20, under_way } });
  const listed = parseStatus(text)?.downloads.under_way.length ?? 0;
  assert.ok(listed > 5 && listed < MEMBER_DOWNLOADS_MAX, `${listed} downloads`);
  assert.ok(new TextEncoder().encode(text).length <= STATUS_BYTES_MAX);
});

const fields = fc.dictionary(
  fc.constantFrom(...Object.keys(REPORTED), "under_way", "count", "up"),
  fc.oneof(
    fc.anything(),
    fc.constantFrom("2026-01-02T03:04:05Z", "2026-99-02T03:04:05Z", -1, 1e300, "x".repeat(9_999)),
    fc.record({ count: fc.anything(), under_way: fc.array(fc.anything()) }),
  ),
);

checkProperty(
  "member status: whatever another process wrote is bounded, and has each field's type",
  fc.property(fc.oneof(fields.map((value) => JSON.stringify(value)), fc.string()), (text) => {
    const read = parseStatus(text);
    if (read === undefined) return;
    assert.ok(JSON.stringify(read).length < 100_000);
    assert.deepEqual(Object.keys(read), Object.keys(REPORTED));
    assert.deepEqual(parseStatus(JSON.stringify(read)), read, "reading it again changes nothing");
    if (read.started_at !== null) new Date(read.started_at).toISOString();
  }),
);
