import { counted, formatBytes } from "../../base/format_units.ts";
import { formatClock } from "../../base/format_times.ts";
import type { Pull, PullUpstream } from "../../history/pulls.ts";

/** Upstreams that a sentence names. */
const NAMED_MAX = 3;

/** Upstreams whose times together are longer by this part were waited for side by side. */
const SIDE_BY_SIDE_PART = 0.05;

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
  // The main cause is the answer, so it comes first.
  const times = ([
    [waitingMs, () => waitsIn(pull)],
    [fetchingMs, () => `${shortTime(fetchingMs)} fetching from ${sendersOf(upstreams)}`],
    [sendingMs, () => `${shortTime(sendingMs)} sending`],
    [pauseMs, () => `${shortTime(pauseMs)} of the client itself`],
  ] as const).filter(([ms]) => ms > 0)
    .toSorted(([a], [b]) => b - a)
    .flatMap(([, words]) => words());
  const { hit, joined, ahead, fetched, absent } = pull.paths;
  const paths = [
    hit > 0 && counted(hit, "hit"),
    joined > 0 && `${count(joined)} shared with another client`,
    ahead > 0 && `${count(ahead)} fetched ahead`,
    fetched > 0 && `${count(fetched)} fetched`,
    absent > 0 && `${count(absent)} not found`,
    pull.underWay > 0 &&
    `${counted(pull.underWay, "request")} under way for ${shortTime(pull.underWayMs)}`,
  ].filter((part) => part !== false);
  return {
    title: `${client}, ${formatClock(pull.beganAtMs, nowMs)}, ${whatOf(pull)}, ${lengthOf(pull)}`,
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

/** `18 s`, or `18 s so far`. */
export function lengthOf({ ms, isRunning }: Pull): string {
  return isRunning ? `running, ${shortTime(ms)} so far` : shortTime(ms);
}

/** `15 s waited for cache.nixos.org (2 paths)`, `2 s for cache.example.org (1 path)`. */
function waitsIn({ waitingMs, upstreams }: Pull): readonly string[] {
  const waited = upstreams.filter(({ waitedMs }) => waitedMs > 0)
    .toSorted((a, b) => b.waitedMs - a.waitedMs);
  const [only, ...others] = waited;
  if (only === undefined) return [`${shortTime(waitingMs)} waited for upstreams`];
  // The whole time is that of the only one.
  if (others.length === 0) return [`${shortTime(waitingMs)} waited for ${waiterOf(only)}`];
  const [first = "", ...named] = waited.slice(0, NAMED_MAX)
    .map((one, index) =>
      `${shortTime(one.waitedMs)}${index > 0 ? "" : " waited"} for ${waiterOf(one)}`
    );
  const rest = waited.slice(NAMED_MAX);
  const restMs = rest.reduce((sum, one) => sum + one.waitedMs, 0);
  const all = rest.length === 0
    ? [first, ...named]
    : [first, ...named, `${shortTime(restMs)} for ${counted(rest.length, "other upstream")}`];
  const sumMs = waited.reduce((sum, one) => sum + one.waitedMs, 0);
  return sumMs > waitingMs * (1 + SIDE_BY_SIDE_PART) ? [all.join(" and meanwhile ")] : all;
}

/** `cache.nixos.org (2 paths, 1 asked in vain)`. */
function waiterOf({ host = "upstreams", paths, inVain }: PullUpstream): string {
  const why = [
    ...(paths > 0 ? [counted(paths, "path")] : []),
    ...(inVain > 0 ? [`${count(inVain)} asked in vain`] : []),
  ];
  return why.length === 0 ? host : `${host} (${why.join(", ")})`;
}

/** `cache.nixos.org (2 paths)`; of several: `cache.nixos.org (2 paths) in 2.0 s and …`. */
function sendersOf(upstreams: readonly PullUpstream[]): string {
  const senders = upstreams.filter(({ sentMs }) => sentMs > 0)
    .toSorted((a, b) => b.sentMs - a.sentMs);
  const nameOf = ({ host = "upstreams", sentPaths }: PullUpstream) =>
    sentPaths > 0 ? `${host} (${counted(sentPaths, "path")})` : host;
  const [only, ...others] = senders;
  if (only === undefined) return "upstreams";
  if (others.length === 0) return nameOf(only);
  const named = senders.slice(0, NAMED_MAX).map((one) =>
    `${nameOf(one)} in ${shortTime(one.sentMs)}`
  );
  const rest = senders.length - named.length;
  return (rest > 0 ? [...named, `${count(rest)} more`] : named).join(" and ");
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
