import assert from "node:assert/strict";
import { transfersPart } from "../../../src/http/page/transfers_part.ts";
import type { BacklogStats, TransferStats } from "../../../src/http/stats/stats.ts";

const LOOK = { isWhole: false, range: "day" } as const;

const NO_BACKLOG = { files: 0, bytes: 0, seconds: 0 };

/** The words about a download of this speed. */
function told(bytes_per_second: number | null, seconds_left: number | null): string {
  const text = shown({ bytes_per_second, seconds_left }, NO_BACKLOG);
  return /class="detail">(.*?)<\/span>/.exec(text)?.[1]?.replace(/<[^>]*>/g, "") ?? "";
}

/** The part of the page with one download. */
function shown(
  speed: Pick<TransferStats, "bytes_per_second" | "seconds_left">,
  verification_backlog: BacklogStats,
): string {
  const one: TransferStats = {
    ...{ nar: "1.nar", name: "big-1.0", client_count: 0, clients: [] },
    state: "receiving",
    ...{ received_bytes: 1_024, file_bytes: 2_048, ...speed },
    started_at: "2026-01-02T03:04:05Z",
  };
  const none = { count: 0, under_way: [] };
  const downloads = { count: 1, under_way: [one] };
  const at = "2026-01-02T03:04:25Z";
  const stats = { downloads, verification_backlog, uploads: none, sends: none, at };
  return transfersPart(stats, LOOK).text;
}

Deno.test("page: a transfer to which nothing comes waits for data, without an end in sight", () => {
  const size = "1.0 KiB of 2.0 KiB";
  assert.equal(told(0, null), `${size}, waiting for data, began 20 s ago`);
  assert.equal(told(512, 2), `${size}, 512 B/s, 2 s left, began 20 s ago`);
  assert.equal(told(null, null), `${size}, began 20 s ago`);
});

Deno.test("page: the files that wait for verification are shown, with their bytes and age", () => {
  const speed = { bytes_per_second: null, seconds_left: null };
  const of = (files: number) => shown(speed, { files, bytes: 3 * 2 ** 30, seconds: 125 });
  assert.match(of(2), />2 files wait for verification: 3\.0 GiB, the oldest for 2 min</);
  assert.match(of(1), />1 file waits for verification: 3\.0 GiB, the oldest for 2 min</);
  assert.doesNotMatch(shown(speed, NO_BACKLOG), /for verification/);
});

Deno.test("page: files that wait for verification are shown without any transfer", () => {
  const [none, at] = [{ count: 0, under_way: [] }, "2026-01-02T03:04:25Z"];
  const of = (verification_backlog: BacklogStats) =>
    transfersPart({ downloads: none, verification_backlog, uploads: none, sends: none, at }, LOOK)
      .text;
  assert.match(of({ files: 1, bytes: 1_024, seconds: 5 }), /1 file waits for verification/);
  assert.match(of(NO_BACKLOG), /Nothing at the moment/);
});
