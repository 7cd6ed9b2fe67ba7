import { counted, formatBytes, formatClock } from "../../base/format_units.ts";
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
  const { waitingMs, fetchingMs, sendingMs, pauseMs, bytes, savedBytes } = pull;
  // The main cause is the answer, so it comes first.
  const times = ([
    [waitingMs, () => waitsIn(pull)],
    [fetchingMs, () => sendsIn(pull)],
    [sendingMs, () => [`${shortTime(sendingMs)} sending`]],
    [pauseMs, () => [`${shortTime(pauseMs)} of the client itself`]],
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
  const shares = upstreams.map((one) => ({ ms: one.waitedMs, name: waiterOf(one) }));
  return sharesOf(waitingMs, shares, { verb: "waited for", again: "for" });
}

/** `15 s fetching from cache.nixos.org (2 paths)`, `2 s from cache.example.org (1 path)`. */
function sendsIn({ fetchingMs, upstreams }: Pull): readonly string[] {
  const shares = upstreams.map(({ host = "upstreams", sentPaths, sentMs }) => ({
    ms: sentMs,
    name: sentPaths > 0 ? `${host} (${counted(sentPaths, "path")})` : host,
  }));
  return sharesOf(fetchingMs, shares, { verb: "fetching from", again: "from" });
}

/** The time of each upstream, the longest first. The whole time is that of the only one. */
function sharesOf(
  wholeMs: number,
  shares: readonly { readonly ms: number; readonly name: string }[],
  { verb, again }: { readonly verb: string; readonly again: string },
): readonly string[] {
  const [first, ...others] = shares.filter(({ ms }) => ms > 0).toSorted((a, b) => b.ms - a.ms);
  if (first === undefined) return [`${shortTime(wholeMs)} ${verb} upstreams`];
  if (others.length === 0) return [`${shortTime(wholeMs)} ${verb} ${first.name}`];
  const sumOf = (some: typeof others) => some.reduce((sum, { ms }) => sum + ms, 0);
  const named = others.slice(0, NAMED_MAX - 1);
  const rest = others.slice(NAMED_MAX - 1);
  const all = [
    `${shortTime(first.ms)} ${verb} ${first.name}`,
    ...named.map(({ ms, name }) => `${shortTime(ms)} ${again} ${name}`),
    ...rest.length === 0
      ? []
      : [`${shortTime(sumOf(rest))} ${again} ${counted(rest.length, "other upstream")}`],
  ];
  const isSideBySide = first.ms + sumOf(others) > wholeMs * (1 + SIDE_BY_SIDE_PART);
  return isSideBySide ? [all.join(" and meanwhile ")] : all;
}

/** `cache.nixos.org (2 paths, 1 asked in vain)`. */
function waiterOf({ host = "upstreams", paths, inVain }: PullUpstream): string {
  const why = [
    ...(paths > 0 ? [counted(paths, "path")] : []),
    ...(inVain > 0 ? [`${count(inVain)} asked in vain`] : []),
  ];
  return why.length === 0 ? host : `${host} (${why.join(", ")})`;
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
