import { KEEPINGS, type ReliabilityRecord, SIGHTS } from "../tests/support/reliability_record.ts";
import { withGenerated } from "./generated_part.ts";

const AREAS: Readonly<Record<ReliabilityRecord["area"], string>> = {
  upstream: "Upstreams",
  client: "Clients",
  upload: "Uploads",
  machine: "The machine",
};

/** The page with the table of a test run's records. */
export function withReliability(page: string, records: readonly ReliabilityRecord[]): string {
  return withGenerated(page, "reliability", tableOf(records));
}

/** The records in a test run's file of JSON lines. */
export function readRecords(path: string): readonly ReliabilityRecord[] {
  return Deno.readTextFileSync(path).split("\n").filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ReliabilityRecord);
}

function tableOf(records: readonly ReliabilityRecord[]): string {
  const lines = [
    "| Fault | What the client saw | What was kept |",
    "| --- | --- | --- |",
  ];
  for (const [area, heading] of Object.entries(AREAS)) {
    lines.push(`| **${heading}** | | |`);
    for (const { fault, saw, withinMs, kept } of records.filter((one) => one.area === area)) {
      const limit = withinMs === undefined ? "" : `, within ${withinMs / 1_000} s`;
      lines.push(`| ${fault} | ${SIGHTS[saw]}${limit} | ${KEEPINGS[kept]} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}
