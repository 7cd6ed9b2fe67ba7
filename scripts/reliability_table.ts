import { KEEPINGS, type ReliabilityRecord, SIGHTS } from "../tests/support/reliability_record.ts";
import { postgresMissing } from "../tests/support/postgres_missing.ts";
import { redisMissing } from "../tests/support/redis_server.ts";
import { S3_UNAVAILABLE } from "../tests/support/s3_server.ts";
import { withGenerated } from "./generated_part.ts";

const AREAS = {
  upstream: "Upstreams",
  client: "Clients",
  upload: "Uploads",
  machine: "The machine",
} as const;

/** A table of its own: where a server program is missing, it stays as it is. */
const MEMBER_AREAS = { members: "Several machines" } as const;

type Areas = Readonly<Partial<Record<ReliabilityRecord["area"], string>>>;

/** The page with the table of a test run's records. */
export function withReliability(page: string, records: readonly ReliabilityRecord[]): string {
  const written = withGenerated(page, "reliability", tableOf(AREAS, records));
  if (missing.some((reason) => reason !== "")) return written;
  const sorted = records.toSorted((a, b) => a.fault < b.fault ? -1 : 1);
  return withGenerated(written, "reliability-members", tableOf(MEMBER_AREAS, sorted));
}

/** Lines of the page that a test run's records do not give, and lines that it lacks. */
export function unlikeTable(
  page: string,
  records: readonly ReliabilityRecord[],
): readonly string[] {
  const [written, seen] = [page, withReliability(page, records)].map((text) =>
    new Set(text.split("\n"))
  ) as [Set<string>, Set<string>];
  return [
    ...[...seen.difference(written)].map((line) => `seen: ${line}`),
    ...[...written.difference(seen)].map((line) => `written: ${line}`),
  ];
}

/** Reasons why the tests of several machines cannot run; each is empty if they can. */
const missing = [redisMissing, postgresMissing, S3_UNAVAILABLE];

/** The records in a test run's file of JSON lines: the last one of each fault. */
export function readRecords(path: string): readonly ReliabilityRecord[] {
  const records = Deno.readTextFileSync(path).split("\n").filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ReliabilityRecord);
  return [...new Map(records.map((one) => [`${one.area}: ${one.fault}`, one])).values()];
}

function tableOf(areas: Areas, records: readonly ReliabilityRecord[]): string {
  const lines = [
    "| Fault | What the client saw | What was kept |",
    "| --- | --- | --- |",
  ];
  for (const [area, heading] of Object.entries(areas)) {
    lines.push(`| **${heading}** | | |`);
    for (const { fault, saw, kept, ...times } of records.filter((one) => one.area === area)) {
      lines.push(`| ${fault} | ${SIGHTS[saw]}${timeOf(times)} | ${KEEPINGS[kept]} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function timeOf({ withinMs, afterMs }: Pick<ReliabilityRecord, "withinMs" | "afterMs">): string {
  if (afterMs !== undefined) return afterMs === 0 ? ", at once" : `, after ${afterMs / 1_000} s`;
  return withinMs === undefined ? "" : `, within ${withinMs / 1_000} s`;
}
