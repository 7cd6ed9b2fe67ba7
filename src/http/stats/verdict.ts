import { counted, formatBytes, formatClock, formatSpan } from "../../base/format_units.ts";
import { DISK, UPSTREAM_DOWN, UPSTREAM_SILENT } from "../../telemetry/events.ts";
import { isPresent, lasts, type Problem } from "../../telemetry/recent_problems.ts";
import { factsInWords, titleOf, whatToDo } from "./problem_words.ts";
import type { FaultStats, MemberStats, SizeStats, UpstreamStats, VerdictStats } from "./stats.ts";
import type { UpstreamState } from "../../upstream/upstream_health.ts";
import { type LimitSource, moreRoomHint } from "../../space/size_limit.ts";
import { upstreamStateOf } from "./shown_state.ts";

/** Below this, downloads soon stop being stored. */
const DISK_FREE_MIN_BYTES = 2 ** 30;

/** With a set limit, that much is enough beside a full larder: for its database, and for others. */
const FULL_FREE_MIN_BYTES = 256 * 2 ** 20;

/** With less free of what `auto` leaves, something else fills the disk: no download does. */
const RESERVE_FREE_MIN_SHARE = 1 / 2;

/** The free bytes of a disk may be as old as that. */
const DISK_LOOK_MAX_MS = 6_000;

const PINNED_PART_MAX = 0.95;

/** Predicates of a cause: for one upstream, and for several. */
const CAUSES: Readonly<Record<Unusable["cause"], readonly [one: string, several: string]>> = {
  down: ["is down", "are down"],
  untrusted: ["is not trusted", "are not trusted"],
  status: ["answers with", "answer with"],
  nars: ["answers NAR requests with", "answer NAR requests with"],
  garbage: ["sends no narinfos", "send no narinfos"],
};

/** The figures that decide whether all is well. */
export interface Judged {
  readonly upstreams: readonly UpstreamStats[];
  readonly size: SizeStats;
  /** True where the NAR files are in a bucket. Default: they are on the disk. */
  readonly isOfBucket?: boolean;
  readonly problems: readonly Problem[];
  /** Default: this larder is alone. */
  readonly members?: readonly MemberStats[];
  readonly atMs: number;
}

/** All is well, or the faults and their remedies: the errors first. */
export function verdictOf(
  { upstreams, size, isOfBucket = false, problems, members = [], atMs }: Judged,
): VerdictStats {
  const ofUpstreams = upstreamFaults(upstreams, atMs);
  const failing = new Set(
    upstreams.filter((one) => upstreamStateOf(one, atMs) !== "up").map(({ url }) => url),
  );
  // What else there is to say of an upstream that fails is a part of that.
  const present = problems.filter((problem) =>
    isFault(problem, atMs) && !failing.has(String(problem.facts["upstream"]))
  );
  // A full disk has said so itself.
  const isDiskKnown = problems.some(({ part, overAtMs = Infinity }) =>
    part === DISK && overAtMs > atMs - DISK_LOOK_MAX_MS
  );
  const faults = [
    ...ofUpstreams,
    ...spaceFaults(isDiskKnown ? { ...size, disk_free_bytes: null } : size, isOfBucket),
    ...isOfBucket || isDiskKnown ? [] : limitFaults(size),
    ...members.filter(({ state }) => state === "gone").map((one) => memberFault(one, atMs)),
    ...present.map((one) => problemFault(one, atMs)),
  ].toSorted((a, b) => Number(b.level === "error") - Number(a.level === "error"));
  const fetches = ofUpstreams.every(({ level }) => level !== "error");
  const wrong = fetches ? "Needs a look" : "Only stored paths are served";
  return {
    is_well: faults.length === 0,
    text: faults.length > 0
      ? wrong
      : upstreams.length > 0
      ? "All is well"
      : "No upstream is configured",
    faults,
  };
}

/** One fault for each cause. If no upstream is of use, that is the only fault. */
function upstreamFaults(upstreams: readonly UpstreamStats[], atMs: number): readonly FaultStats[] {
  const states = Map.groupBy(upstreams, (one) => upstreamStateOf(one, atMs));
  const isServed = states.delete("up");
  const causes = [...states].flatMap(([cause, ones]) => cause === "up" ? [] : [{ cause, ones }]);
  if (isServed || causes.length === 0) {
    return causes.map((one) => ({ level: "warn", ...partFault(one, upstreams.length) }));
  }
  const [first, second] = causes;
  if (first?.cause === "down" && second === undefined) {
    const text = first.ones.length === 1 ? "The upstream is down" : "All upstreams are down";
    return [{ level: "error", text, hint: hintOf(first.ones) }];
  }
  if (first !== undefined && second === undefined) {
    return [{ level: "error", ...partFault(first, upstreams.length) }];
  }
  const text = `No upstream can be used: ${causes.map(causeText).join(", ")}`;
  return [{ level: "error", text, hint: hintOf(upstreams) }];
}

/** Upstreams of no use for one cause. */
interface Unusable {
  readonly cause: Exclude<UpstreamState, "up">;
  readonly ones: readonly UpstreamStats[];
}

/** The fault of some upstreams. */
function partFault({ cause, ones }: Unusable, count: number): Pick<FaultStats, "text" | "hint"> {
  const [hosts, hint] = [hostsOf(ones), hintOf(ones)];
  if (cause === "down") {
    const verb = ones.length === 1 ? "is" : "are";
    return { text: `${counted(ones.length, "upstream")} of ${count} ${verb} down: ${hosts}`, hint };
  }
  if (cause === "untrusted") return { text: `No trusted key signs the narinfos of ${hosts}`, hint };
  const upstreams = ones.length === 1 ? "Upstream" : "Upstreams";
  return { text: `${upstreams} ${causeText({ cause, ones })}`, hint };
}

function causeText({ cause, ones }: Unusable): string {
  if (cause === "nars" && statusesOf(ones).length === 0) {
    return `${hostsOf(ones)} ${ones.length === 1 ? "does" : "do"} not answer NAR requests`;
  }
  const [one, several] = CAUSES[cause];
  const errors = cause === "status" || cause === "nars" ? ` ${errorsOf(ones)}` : "";
  return `${hostsOf(ones)} ${ones.length === 1 ? one : several}${errors}`;
}

function errorsOf(upstreams: readonly UpstreamStats[]): string {
  const statuses = statusesOf(upstreams);
  return statuses.length === 0 ? "errors" : `HTTP status ${statuses.join(" or ")}`;
}

function statusesOf(upstreams: readonly UpstreamStats[]): readonly number[] {
  const statuses = new Set(upstreams.flatMap(({ last_error }) => last_error?.status ?? []));
  return [...statuses].toSorted();
}

/** Remedies for these upstreams, in the words of their rows and of the log. */
function hintOf(upstreams: readonly UpstreamStats[]): string {
  const hints = upstreams.map(({ last_error }) => last_error?.hint ?? UPSTREAM_SILENT);
  return [...new Set(hints)].join("; ");
}

/** What an operator can do on a full disk, by the limit of what larder may put there. */
const DISK_HINTS: Readonly<Record<LimitSource, string>> = {
  set: "make room, or lower --cache-max-size",
  disk: "make room: something else fills it, and larder evicts what it may",
  unlimited: "make room, or set --cache-max-size to auto",
  bucket: "make room: the database and the running downloads need some",
  unknown: "make room, or set --cache-max-size",
};

function spaceFaults(size: SizeStats, isOfBucket: boolean): FaultStats[] {
  const { pinned_bytes, limit_bytes, limit_source, disk_free_bytes, disk_reserve_bytes } = size;
  const faults: FaultStats[] = [];
  // On a small disk, larder itself leaves less.
  const freeMinBytes = Math.min(
    DISK_FREE_MIN_BYTES,
    RESERVE_FREE_MIN_SHARE * (disk_reserve_bytes ?? Infinity),
  );
  const isEnough = !isOfBucket && freeOnceFull(size) >= FULL_FREE_MIN_BYTES;
  if (disk_free_bytes !== null && disk_free_bytes < freeMinBytes && !isEnough) {
    const text = `The disk has only ${formatBytes(disk_free_bytes)} left`;
    faults.push({ level: "warn", text, hint: DISK_HINTS[limit_source] });
  }
  if (limit_bytes !== null && limit_bytes > 0 && pinned_bytes > PINNED_PART_MAX * limit_bytes) {
    const text = `Pins fill ${Math.floor(100 * pinned_bytes / limit_bytes)} % of the size limit`;
    faults.push({ level: "warn", text, hint: moreRoomHint(limit_source) });
  }
  return faults;
}

/** The free bytes of the disk once larder has filled its set limit; without one it fills the disk. */
function freeOnceFull(
  { used_bytes, limit_bytes, limit_source, disk_free_bytes }: SizeStats,
): number {
  if (limit_source !== "set" || limit_bytes === null || disk_free_bytes === null) return 0;
  return disk_free_bytes - Math.max(0, limit_bytes - used_bytes);
}

/** The part of a disk's room that a limit may take: others need some, too. */
const ADVISED_SHARE = 0.9;

/** A size that the disk has no room for: it is full before larder evicts anything. */
function limitFaults(
  { used_bytes, reserved_bytes, limit_bytes, limit_source, disk_free_bytes }: SizeStats,
): FaultStats[] {
  if (limit_source !== "set" || limit_bytes === null || disk_free_bytes === null) return [];
  const possible = used_bytes + reserved_bytes + disk_free_bytes;
  if (limit_bytes <= possible) return [];
  const text = `The size limit of ${formatBytes(limit_bytes)} cannot hold: the disk has room for ` +
    `${formatBytes(possible)}`;
  const gib = Math.floor(possible * ADVISED_SHARE / 2 ** 30);
  const size = gib > 0 ? `, or to ${gib}G at most` : "";
  return [{ level: "warn", text, hint: `set --cache-max-size to auto${size}` }];
}

/**
 * The upstreams' own figures say which fail. Nobody can act on their other warnings, and no message
 * ends them.
 */
function isFault(problem: Problem, atMs: number): boolean {
  if (!isPresent(problem, atMs)) return false;
  const { part, event, level, facts } = problem;
  if (lasts(event)) return part !== UPSTREAM_DOWN;
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

/** A member that was killed, or cut off from the database. */
function memberFault({ id, host, url, reported_at }: MemberStats, atMs: number): FaultStats {
  const place = url === null ? "" : ` at ${url}`;
  const silence = formatSpan((atMs - Date.parse(reported_at)) / 1_000);
  return {
    level: "warn",
    text: `Member ${host || id}${place} is gone: no report for ${silence}`,
    hint: "look at its machine and its log, and start it again; one that is stopped by SIGTERM " +
      "takes its leave",
  };
}

/** Nobody may have tried since the last failure of an outage: so it says when that was. */
function timesOf({ event, begunAtMs, lastAtMs }: Problem, atMs: number): string {
  const [begun, last] = [formatClock(begunAtMs, atMs), formatClock(lastAtMs, atMs)];
  if (!lasts(event)) return `at ${last}`;
  return begun === last ? `since ${begun}` : `since ${begun}, last seen at ${last}`;
}

function hostsOf(upstreams: readonly UpstreamStats[]): string {
  return upstreams.map(({ url }) => URL.canParse(url) ? new URL(url).host : url).join(", ");
}
