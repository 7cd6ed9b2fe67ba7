import assert from "node:assert/strict";
import { transfersPart } from "../../../src/http/page/transfers_part.ts";
import type { TransferStats } from "../../../src/http/stats/stats.ts";

const LOOK = { isWhole: false, range: "day" } as const;

/** The words about a download of this speed. */
function told(bytes_per_second: number | null, seconds_left: number | null): string {
  const one: TransferStats = {
    ...{ nar: "1.nar", name: "big-1.0", client_count: 0, clients: [] },
    state: "receiving",
    ...{ received_bytes: 1_024, file_bytes: 2_048, bytes_per_second, seconds_left },
    started_at: "2026-01-02T03:04:05Z",
  };
  const none = { count: 0, under_way: [] };
  const downloads = { count: 1, under_way: [one] };
  const at = "2026-01-02T03:04:25Z";
  const { text } = transfersPart({ downloads, uploads: none, sends: none, at }, LOOK);
  return /class="detail">(.*?)<\/span>/.exec(text)?.[1]?.replace(/<[^>]*>/g, "") ?? "";
}

Deno.test("page: a transfer to which nothing comes waits for data, without an end in sight", () => {
  const size = "1.0 KiB of 2.0 KiB";
  assert.equal(told(0, null), `${size}, waiting for data, began 20 s ago`);
  assert.equal(told(512, 2), `${size}, 512 B/s, 2 s left, began 20 s ago`);
  assert.equal(told(null, null), `${size}, began 20 s ago`);
});
