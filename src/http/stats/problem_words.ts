import { formatBytes, formatMs } from "../../base/format_units.ts";
import type { ProblemStats } from "./stats.ts";

/** A problem as the log has it. */
type ProblemMessage = Pick<ProblemStats, "message" | "facts">;

const CHECK_DATABASE = "check the database with larder doctor; larder tries again";
const CHECK_RIGHTS = "give larder the right to remove files from its storage; larder tries again";

/** Remedies for events whose log lines have no hint. */
const WHAT_TO_DO: Readonly<Record<string, string>> = {
  "upstream lost nar": "nothing: the file is missing there, and another upstream may have it",
  "upstream sent more than the nar file": "nothing: larder refused the file",
  "nar verification failed":
    "nothing: larder refused the file, and avoids that upstream for an hour",
  "download broke off":
    "nothing: larder tries again or asks another upstream, and says so if it gives the NAR up",
  "nar not fetched":
    "check the upstreams and the network: none of them sent the NAR, so clients got 404",
  "nar download given up":
    "check the upstreams and the network: no upstream sent the rest; build again then",
  "download failed": "look at the upstreams: none of them could send the file",
  "stored nar is damaged": "check the disk; larder fetches the file again",
  "token is short": "set a longer token",
  "narinfo not kept": CHECK_DATABASE,
  "seal not written": CHECK_DATABASE,
  "member not registered": CHECK_DATABASE,
  "search for dead members failed": CHECK_DATABASE,
  "counting pinned closures failed": CHECK_DATABASE,
  "unused metadata not removed": CHECK_DATABASE,
  "expired uploads not removed": CHECK_DATABASE,
  "eviction failed": CHECK_DATABASE,
  "busy nars not counted": CHECK_DATABASE,
  "damaged nar not removed": CHECK_RIGHTS,
  "download not removed": CHECK_RIGHTS,
  "upload failed": "check the disk of the storage, then upload again",
  "document not kept": "check the disk of the storage",
  "document encoding not known": "nothing: larder passes the document through as it came",
  "document not usable": "nothing: larder refused the document",
  "pins not verified": "check the storage and the database, then run larder verify --pins again",
  "recompression paused": "wait: larder tries again a minute later; check the database if it lasts",
  "nar not recompressed": "nothing: the file stays as it came, and larder tries again",
  "received nar not resumed": "nothing: larder fetches the file again",
  "received nar not kept": "nothing: larder fetches the file again",
  "orphan nar removed": "nothing, unless you put the file there",
  "requests aborted at shutdown": "nothing: clients ask again",
  "opentelemetry disabled": "unset OTEL_SDK_DISABLED to enable it",
  "unexpected failure": "report it with its log line, which has the stack",
};

/** Reasons of the log, for people. */
export const REASONS: Readonly<Record<string, string>> = {
  found: "found",
  absent: "not found",
  timeout: "it did not answer in time",
  unreachable: "it cannot be reached",
  status: "it answered with an error",
  garbage: "its answer was no narinfo",
  untrusted: "no trusted key has signed its answer",
  upstream: "it broke the transfer off",
  stalled: "it stopped sending",
};

/** A reason of the log, for people, with the status of the response if that is the reason. */
export function reasonInWords(reason: string, status: unknown): string {
  if (reason === "status" && typeof status === "number") {
    return `it answered with HTTP status ${status}`;
  }
  return REASONS[reason] ?? reason;
}

/** The facts that stand elsewhere in a problem's row. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["hint", "name", "upstream", "reason"]);

/** The remedy for a problem; `undefined` if that is unknown. */
export function whatToDo({ message, facts }: ProblemMessage): string | undefined {
  return typeof facts["hint"] === "string" ? facts["hint"] : WHAT_TO_DO[message];
}

/** Its subject, if it has one, and its facts in words with their units. */
export function factsInWords({ facts }: ProblemMessage): readonly string[] {
  const { upstream, reason, status, name } = facts;
  const others = Object.entries(facts).filter(([fact]) =>
    !SHOWN_ELSEWHERE.has(fact) && !(fact === "nar" && name !== undefined) &&
    !(fact === "status" && reason === "status")
  );
  return [
    ...name === undefined ? [] : [String(name)],
    ...upstream === undefined ? [] : [String(upstream)],
    ...reason === undefined ? [] : [reasonInWords(String(reason), status)],
    ...others.map(([name, value]) => inWords(name, value)),
  ];
}

function inWords(name: string, value: string | number | boolean): string {
  const words = name.replace(/_(bytes|ms)$/, "").replaceAll("_", " ");
  if (typeof value !== "number") return `${words} ${value}`;
  if (name === "bytes_per_second") return `${formatBytes(value)}/s`;
  if (name.endsWith("_ms")) return `${words} ${formatMs(value)}`;
  const isSize = /_bytes$|_size$/.test(name);
  return `${words} ${isSize ? formatBytes(value) : value.toLocaleString("en-US")}`;
}

/** Titles of events whose count is that of the breaks before them. */
const TITLES: Readonly<Record<string, string>> = {
  "nar not fetched": "NAR requests failed, and clients got 404",
  "nar download given up": "NAR downloads broke off, and larder gave up",
};

/** A log message as a sentence's begin. */
export function titleOf({ message }: ProblemMessage): string {
  const title = TITLES[message];
  if (title !== undefined) return title;
  const text = message.replace(/\bnar(s?)\b/g, "NAR$1");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
