import { counted, formatBytes } from "../../base/format_units.ts";
import { formatClock } from "../../base/format_times.ts";
import type { Pull, PullUpstream } from "../../history/pulls.ts";

/** Upstreams that a sentence names. */
const NAMED_MAX = 2;

/** A pull in parts of a sentence. */
export interface PullWords {
  /** Who, when, what and how long. */
  readonly title: string;
  /** Where the time went. */
  readonly times: string;
  /** How the paths came. */
  readonly paths: string;
  readonly bytes: string;
}

/** `client`: as it may be shown. */
export function pullWords(pull: Pull, client: string, nowMs: number): PullWords {
  const { waitingMs, fetchingMs, sendingMs, pauseMs, upstreams, bytes, savedBytes } = pull;
  const times = [
    waitingMs > 0 && `${shortTime(waitingMs)} waited for ${namesOf(upstreams, "paths")}`,
    fetchingMs > 0 &&
    `${shortTime(fetchingMs)} sending what came from ${namesOf(upstreams, "sentPaths")}`,
    sendingMs > 0 && `${shortTime(sendingMs)} sending`,
    pauseMs > 0 && `${shortTime(pauseMs)} of the client itself`,
  ].filter((part) => part !== false);
  const { hit, joined, ahead, fetched, absent } = pull.paths;
  const paths = [
    hit > 0 && counted(hit, "hit"),
    joined > 0 && `${count(joined)} shared with another client`,
    ahead > 0 && `${count(ahead)} fetched ahead`,
    fetched > 0 && `${count(fetched)} fetched`,
    absent > 0 && `${count(absent)} not found`,
  ].filter((part) => part !== false);
  return {
    title: `${client}, ${formatClock(pull.beganAtMs, nowMs)}, ${whatOf(pull)}, ${
      shortTime(pull.ms)
    }`,
    times: times.length === 0 ? "no time that larder can measure" : times.join(", "),
    paths: paths.join(", "),
    bytes: savedBytes > 0
      ? `${formatBytes(bytes)}, of which ${formatBytes(savedBytes)} saved`
      : formatBytes(bytes),
  };
}

/** The same as one sentence. */
export function pullSentence({ title, times, paths, bytes }: PullWords): string {
  return `${title}: ${[times, paths, bytes].filter((part) => part !== "").join("; ")}`;
}

/** `firefox-145.0 and 42 more`. */
export function whatOf({ first, paths: { hit, joined, ahead, fetched } }: Pull): string {
  const others = hit + joined + ahead + fetched - 1;
  if (first === undefined) return "no path";
  return others > 0 ? `${first} and ${count(others)} more` : first;
}

/** `cache.nixos.org (2 paths)`; the slowest first. */
function namesOf(upstreams: readonly PullUpstream[], paths: "paths" | "sentPaths"): string {
  const ms = paths === "paths" ? "waitedMs" : "sentMs";
  const waited = upstreams.filter((one) => one[paths] > 0 && one[ms] > 0)
    .toSorted((a, b) => b[ms] - a[ms]);
  const named = waited.slice(0, NAMED_MAX)
    .map((one) => `${one.host ?? "upstreams"} (${counted(one[paths], "path")})`);
  const rest = waited.length - named.length;
  const all = rest > 0 ? [...named, `${count(rest)} more`] : named;
  return all.length === 0 ? "upstreams" : all.join(" and ");
}

/** `41 ms`, `1.9 s`, `18 s`, `2 min 5 s`, `1 h 2 min`. */
export function shortTime(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
