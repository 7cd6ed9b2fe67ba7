import { counted, formatBytes, formatDate, formatSpan } from "../../base/format_units.ts";
import { visible } from "../../base/visible.ts";
import { formatPercent } from "../../http/page/format.ts";
import { clock } from "../../runtime/current.ts";
import { limitOrigin, type LimitSource } from "../../space/size_limit.ts";
import type { ServerJson } from "../client/server_json.ts";
import { memberLines, problemLines, transferLines, upstreamLines } from "./status_lists.ts";
import { wrapped } from "../../base/wrapped.ts";
import { shownVerdict } from "./shown_verdict.ts";

/** Size of the terminal. */
export interface ScreenSize {
  /** `undefined` outside a terminal, unless `COLUMNS` says it: no line is cut then. */
  readonly columns: number | undefined;
  /** `undefined` outside a terminal. */
  readonly rows: number | undefined;
}

export interface StatusFacts {
  /** The address, for people. */
  readonly server: string;
  /** The answer of `/stats`, with names in `snake_case`. */
  readonly stats: ServerJson;
}

const LABEL_COLUMNS = 11;
const BAR_COLUMNS = 20;

/** Lists are shorter on a low screen, and never longer than this. */
const LIST_MAX = 8;
const LISTS = 4;
const ROWS_OF_THE_REST = 12;

/** The state of a server on one screen: a line for each thing, the verdict first. */
export function statusScreen(
  { server, stats }: StatusFacts,
  size: ScreenSize,
  isWrapped = false,
): string {
  const listMax = listMaxOf(size.rows);
  const nowMs = stats.at("at").timeMs ?? clock.wallMs();
  const version = stats.at("version").text ?? "(unknown version)";
  const up = stats.at("uptime_seconds").number;
  const lines = [
    `larder ${version} answers at ${server}${up === undefined ? "" : `, up ${formatSpan(up)}`}`,
    ...shownVerdict(stats).lines,
    "",
    ...block("Requests", requestLines(stats)),
    ...block("Saved", [savedLine(stats)]),
    ...block("Space", [spaceLine(stats)]),
    ...block("Upstreams", upstreamLines(stats, { nowMs, max: listMax })),
    ...block("Members", memberLines(stats, { nowMs, max: listMax })),
    ...block("Downloads", transferLines(stats.at("downloads"), listMax)),
    ...block("Uploads", transferLines(stats.at("uploads"), listMax)),
    ...block("Pins", pinLines(stats)),
    ...block("Problems", problemLines(stats, { nowMs, max: listMax })),
  ];
  return lines.map((line) => `${fitted(visible(line), size.columns, isWrapped)}\n`).join("");
}

function listMaxOf(rows: number | undefined): number {
  if (rows === undefined) return LIST_MAX;
  return Math.max(1, Math.min(LIST_MAX, Math.floor((rows - ROWS_OF_THE_REST) / LISTS)));
}

/** The lines with their label in front of the first. Nothing without lines. */
function block(label: string, lines: readonly string[]): readonly string[] {
  return lines.map((line, index) => `${(index === 0 ? label : "").padEnd(LABEL_COLUMNS)}${line}`);
}

/** A narrower terminal would show little more than the labels. */
const WRAP_COLUMNS_MIN = 60;

/**
 * A line that fits a narrower terminal: without the gaps of its columns. What is too long even then
 * goes on below, or is cut where each thing has one line.
 */
function fitted(line: string, columns = Infinity, isWrapped = false): string {
  if (line.length <= columns) return line.trimEnd();
  const text = line.slice(LABEL_COLUMNS).replaceAll(/(\S) {2,}/g, "$1  ");
  const tight = line.slice(0, LABEL_COLUMNS) + text;
  if (tight.length <= columns) return tight;
  if (!isWrapped || columns < WRAP_COLUMNS_MIN) return `${tight.slice(0, columns - 1)}…`;
  const [indent = ""] = /^ */.exec(tight) ?? [];
  return wrapped(tight, columns, Math.max(0, LABEL_COLUMNS - indent.length));
}

function requestLines(stats: ServerJson): readonly string[] {
  return [["narinfo", "narinfo"], ["nar", "NAR"]].map(([kind = "", label = ""]) => {
    const all = stats.at("lifetime", kind, "requests").number ?? 0;
    const ratio = stats.at("lifetime", kind, "hit_ratio").number;
    const hits = ratio === undefined ? "" : `, ${formatPercent(ratio)} hits`;
    return `${counted(all, label)}${hits}`;
  });
}

function savedLine(stats: ServerJson): string {
  const sinceMs = stats.at("lifetime", "since").timeMs;
  const since = sinceMs === undefined ? "the start" : formatDate(sinceMs);
  const of = (name: string) => formatBytes(stats.at("lifetime", name).number ?? 0);
  const [saved, served, fetched] = [of("saved_bytes"), of("served_bytes"), of("upstream_bytes")];
  return `${saved} of ${served} served, ${fetched} fetched, since ${since}`;
}

function spaceLine(stats: ServerJson): string {
  const of = (name: string) => stats.at("size", name).number ?? 0;
  const [used, limit] = [of("used_bytes"), of("limit_bytes")];
  const more = [
    ...of("pinned_bytes") > 0 ? [`, ${formatBytes(of("pinned_bytes"))} pinned`] : [],
    ...of("reserved_bytes") > 0 ? [`, ${formatBytes(of("reserved_bytes"))} reserved`] : [],
  ].join("");
  const source = stats.at("size", "limit_source").text as LimitSource | undefined;
  const reserve = stats.at("size", "disk_reserve_bytes").number;
  const origin = source === undefined ? "" : ` (${limitOrigin(source, reserve)})`;
  if (limit === 0) return `${formatBytes(used)} used, no limit${origin}${more}`;
  return `${barOf(used / limit)} ${formatBytes(used)} of ${formatBytes(limit)}${origin}${more}`;
}

function pinLines(stats: ServerJson): readonly string[] {
  const count = stats.at("pins", "count").number ?? 0;
  if (count === 0) return [];
  const short = stats.at("pins", "roots").list.filter((one) => (one.at("missing").number ?? 0) > 0);
  const whole = short.length === 0 ? "" : `, ${short.length} with missing paths (larder pins)`;
  return [`${counted(count, "root")}${whole}`];
}

function barOf(part: number): string {
  const full = Math.round(Math.min(1, Math.max(0, part)) * BAR_COLUMNS);
  return `[${"#".repeat(full)}${"-".repeat(BAR_COLUMNS - full)}]`;
}
