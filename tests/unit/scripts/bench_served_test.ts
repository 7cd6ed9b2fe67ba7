import assert from "node:assert/strict";
import { servedTable } from "../../../scripts/bench/eviction/served_table.ts";

const cpu = { threads: new Map([["main", 3], ["worker-1", 1]]), kernelSeconds: 1 };
const latency = (p99Ms: number) => ({ medianMs: 0.5, p99Ms, longestMs: 30, cpu });

Deno.test("bench eviction: latencies have their targets, and a missed one is printed so", () => {
  const rows = servedTable({
    before: latency(1),
    scrapes: latency(10),
    during: latency(20.01),
    evictedCount: 30_000,
    evictionSeconds: 15,
  }).split("\n");
  assert.deepEqual(rows.slice(2), [
    "| nothing else happens | 0.50 ms | 1.00 ms | 30.00 ms | – |  |",
    "| scrapes of /metrics, nothing else happens | 0.50 ms | 10.00 ms | 30.00 ms | p99 ≤ 10 ms |" +
    " reached |",
    "| 30,000 entries are evicted, 2,000 a second | 0.50 ms | 20.01 ms | 30.00 ms | p99 ≤ 20 ms |" +
    " MISSED |",
    "",
    "* Missed: 30,000 entries are evicted, 2,000 a second. Processor time of larder: main 75 %, " +
    "worker-1 25 %; 25 % of all in the kernel.",
    "",
  ]);
});
