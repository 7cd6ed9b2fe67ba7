import { counted, formatBytes } from "../../base/format_units.ts";
import { formatClock } from "../../base/format_times.ts";
import { begunBy, UPSTREAM_DOWN } from "../../telemetry/outages.ts";
import { isPresent, type Problem } from "../../telemetry/recent_problems.ts";
import { factsInWords, REASONS, titleOf, whatToDo } from "./problem_words.ts";
import type { FaultStats, SizeStats, UpstreamStats, VerdictStats } from "./stats.ts";

/** Below this, downloads soon stop being stored. */
const DISK_FREE_MIN_BYTES = 1 << 30;

const PINNED_PART_MAX = 0.95;

/** The figures that decide whether all is well. */
export interface Judged {
  readonly upstreams: readonly UpstreamStats[];
  readonly size: SizeStats;
  readonly problems: readonly Problem[];
  readonly atMs: number;
}

/** Whether all is well, or what is wrong and what to do: the errors first. */
export function verdictOf({ upstreams, size, problems, atMs }: Judged): VerdictStats {
  const ofUpstreams = upstreamFaults(upstreams);
  const faults = [
    ...ofUpstreams,
    ...spaceFaults(size),
    ...problems.filter((problem) => isFault(problem, atMs)).map((one) => problemFault(one, atMs)),
  ].toSorted((a, b) => Number(b.level === "error") - Number(a.level === "error"));
  const fetches = ofUpstreams.every(({ level }) => level !== "error");
  const wrong = fetches ? "Needs a look" : "Only stored paths are served";
  return {
    is_well: faults.length === 0,
    text: faults.length === 0 ? "All is well" : wrong,
    faults,
  };
}

function upstreamFaults(upstreams: readonly UpstreamStats[]): readonly FaultStats[] {
  const down = upstreams.filter(({ is_up }) => !is_up);
  if (down.length > 0 && down.length === upstreams.length) {
    const text = down.length === 1 ? "The upstream is down" : "All upstreams are down";
    const hint = "check the network of this machine; larder uses them again as soon as they answer";
    return [{ level: "error", text, hint }];
  }
  const faults: FaultStats[] = [];
  if (down.length > 0) {
    const text = `${counted(down.length, "upstream")} of ${upstreams.length} ` +
      `${down.length === 1 ? "is" : "are"} down: ${hostsOf(down)}`;
    const hint = "nothing at once, the others answer; check its URL and the network if it lasts";
    faults.push({ level: "warn", text, hint });
  }
  const untrusted = upstreams.filter((one) => isFailing(one) && resultOf(one) === "untrusted");
  if (untrusted.length > 0) {
    faults.push({
      level: untrusted.length === upstreams.length ? "error" : "warn",
      text: `No trusted key signs the narinfos of ${hostsOf(untrusted)}`,
      hint: "give its public key with --cache-upstream-public-key",
    });
  }
  for (const one of upstreams.filter(isFailing)) {
    const { last_error } = one;
    if (untrusted.includes(one) || last_error === null) continue;
    const text = `Upstream ${hostsOf([one])} fails: ${REASONS[last_error.reason] ?? "unknown"}`;
    faults.push({ level: "warn", text, hint: last_error.hint });
  }
  return faults;
}

function resultOf({ last_answer }: UpstreamStats): string {
  return last_answer?.result ?? "absent";
}

/** It answers, but its last answer was of no use. */
function isFailing(one: UpstreamStats): boolean {
  return one.is_up && !["found", "absent"].includes(resultOf(one));
}

function spaceFaults({ pinned_bytes, limit_bytes, disk_free_bytes }: SizeStats): FaultStats[] {
  const faults: FaultStats[] = [];
  if (disk_free_bytes !== null && disk_free_bytes < DISK_FREE_MIN_BYTES) {
    const text = `The disk has only ${formatBytes(disk_free_bytes)} left`;
    faults.push({ level: "warn", text, hint: "make room, or lower --cache-max-size" });
  }
  if (limit_bytes !== null && limit_bytes > 0 && pinned_bytes > PINNED_PART_MAX * limit_bytes) {
    const text = `Pins fill ${Math.floor(100 * pinned_bytes / limit_bytes)} % of the size limit`;
    faults.push({ level: "warn", text, hint: "unpin something, or raise --cache-max-size" });
  }
  return faults;
}

/** The upstreams' own figures say which fail. Their other warnings need nobody, and have no end. */
function isFault(problem: Problem, atMs: number): boolean {
  if (!isPresent(problem, atMs)) return false;
  const { level, message, facts } = problem;
  const begun = begunBy(message);
  if (begun !== undefined) return begun.kind !== UPSTREAM_DOWN;
  return level === "error" || !("upstream" in facts);
}

function problemFault(problem: Problem, atMs: number): FaultStats {
  const facts = factsInWords(problem).join(", ");
  const about = facts === "" ? "" : ` (${facts})`;
  return {
    level: problem.level,
    text: `${titleOf(problem)}${about}, ${timesOf(problem, atMs)}`,
    hint: whatToDo(problem) ?? null,
  };
}

/** Nobody may have tried since the last failure of an outage: so it says when that was. */
function timesOf({ message, firstAtMs, lastAtMs }: Problem, atMs: number): string {
  const [first, last] = [formatClock(firstAtMs, atMs), formatClock(lastAtMs, atMs)];
  if (begunBy(message) === undefined) return `at ${last}`;
  return first === last ? `since ${first}` : `since ${first}, last seen at ${last}`;
}

function hostsOf(upstreams: readonly UpstreamStats[]): string {
  return upstreams.map(({ url }) => URL.canParse(url) ? new URL(url).host : url).join(", ");
}
