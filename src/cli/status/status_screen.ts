import { formatDate } from "../../base/format_times.ts";
import { counted, formatBytes, formatSeconds } from "../../base/format_units.ts";
import { visible } from "../../base/visible.ts";
import { Told } from "../client/told.ts";
import { problemKinds, SUBJECTS_MAX } from "../../http/stats/problem_kinds.ts";
import { whatToDo } from "../../http/stats/problem_words.ts";
import { upstreamStateOf } from "../../http/stats/upstream_state.ts";
import { verdictOf } from "./verdict.ts";

/** Where a screen is shown. */
export interface ScreenSize {
  /** `undefined` outside a terminal: no line is cut. */
  readonly columns: number | undefined;
  /** `undefined` outside a terminal. */
  readonly rows: number | undefined;
}

export interface StatusFacts {
  /** The address, for people. */
  readonly server: string;
  /** The answer of `/stats`, with names in `snake_case`. */
  readonly stats: Told;
}

const LABEL_COLUMNS = 11;
const BAR_COLUMNS = 20;
const NAME_COLUMNS = 34;

/** Lists are shorter on a low screen, and never longer than this. */
const LIST_MAX = 8;
const LISTS = 4;
const ROWS_OF_THE_REST = 12;

/** The state of a server on one screen: a line for each thing, the verdict first. */
export function statusScreen({ server, stats }: StatusFacts, size: ScreenSize): string {
  const listMax = listMaxOf(size.rows);
  const nowMs = stats.at("at").timeMs ?? Date.now();
  const version = stats.at("version").text ?? "(unknown version)";
  const up = stats.at("uptime_seconds").number;
  const lines = [
    `larder ${version} answers at ${server}${up === undefined ? "" : `, up ${formatSeconds(up)}`}`,
    ...verdictOf(stats, nowMs).lines,
    "",
    ...block("Requests", requestLines(stats)),
    ...block("Saved", [savedLine(stats)]),
    ...block("Space", [spaceLine(stats)]),
    ...block("Upstreams", upstreamLines(stats, { nowMs, max: listMax })),
    ...block("Downloads", transferLines(stats.at("downloads"), listMax)),
    ...block("Uploads", transferLines(stats.at("uploads"), listMax)),
    ...block("Pins", pinLines(stats)),
    ...block("Problems", problemLines(stats, { nowMs, max: listMax })),
  ];
  return lines.map((line) => `${fitted(visible(line), size.columns)}\n`).join("");
}

function listMaxOf(rows: number | undefined): number {
  if (rows === undefined) return LIST_MAX;
  return Math.max(1, Math.min(LIST_MAX, Math.floor((rows - ROWS_OF_THE_REST) / LISTS)));
}

/** The lines with their label in front of the first. Nothing without lines. */
function block(label: string, lines: readonly string[]): readonly string[] {
  return lines.map((line, index) => `${(index === 0 ? label : "").padEnd(LABEL_COLUMNS)}${line}`);
}

/** Without the gaps of its columns, then cut, if the terminal is narrower. */
function fitted(line: string, columns = Infinity): string {
  if (line.length <= columns) return line.trimEnd();
  const text = line.slice(LABEL_COLUMNS).replaceAll(/(\S) {2,}/g, "$1  ");
  const tight = line.slice(0, LABEL_COLUMNS) + text;
  return tight.length <= columns ? tight : `${tight.slice(0, columns - 1)}…`;
}

function shortened(lines: readonly string[], max: number): readonly string[] {
  const hidden = lines.length - max;
  return hidden <= 0 ? lines : [...lines.slice(0, -hidden), `and ${hidden} more`];
}

function requestLines(stats: Told): readonly string[] {
  return [["narinfo", "narinfos"], ["nar", "NARs"]].map(([kind = "", label = ""]) => {
    const of = (name: string) => stats.at("requests", kind, name).number ?? 0;
    const all = of("hits") + of("misses") + of("joined") + of("prefetched") + of("absent");
    const ratio = stats.at("requests", kind, "hit_ratio").number;
    const hits = ratio === undefined ? "" : `, ${percent(ratio)} hits`;
    return `${all.toLocaleString("en-US")} ${label}${hits}`;
  });
}

function savedLine(stats: Told): string {
  const sinceMs = stats.at("lifetime", "since").timeMs;
  // An older server has no lifetime figures.
  const since = sinceMs === undefined ? "the start" : formatDate(sinceMs);
  const figures = stats.at(sinceMs === undefined ? "traffic" : "lifetime");
  const of = (name: string) => formatBytes(figures.at(name).number ?? 0);
  const [saved, served, fetched] = [of("saved_bytes"), of("served_bytes"), of("upstream_bytes")];
  return `${saved} of ${served} served, ${fetched} fetched, since ${since}`;
}

function spaceLine(stats: Told): string {
  const of = (name: string) => stats.at("size", name).number ?? 0;
  const [used, limit] = [of("used_bytes"), of("limit_bytes")];
  const more = [
    ...of("pinned_bytes") > 0 ? [`, ${formatBytes(of("pinned_bytes"))} pinned`] : [],
    ...of("reserved_bytes") > 0 ? [`, ${formatBytes(of("reserved_bytes"))} reserved`] : [],
  ].join("");
  if (limit === 0) return `${formatBytes(used)} used, no limit${more}`;
  return `${barOf(used / limit)} ${formatBytes(used)} of ${formatBytes(limit)}${more}`;
}

/** Bounds of a list, and the time of the figures. */
interface ListParts {
  readonly nowMs: number;
  readonly max: number;
}

function upstreamLines(stats: Told, { nowMs, max }: ListParts): readonly string[] {
  const lines = stats.at("upstreams").list.map((one) => {
    const result = one.at("last_answer", "result").text;
    const reason = one.at("last_error", "reason").text;
    const state = upstreamStateOf({
      is_up: one.at("is_up").isTrue,
      last_answer: result === undefined ? null : { result, at: timeOf(one, "last_answer") },
      last_error: reason === undefined ? null : { reason, at: timeOf(one, "last_error") },
    }, nowMs);
    const mark = state === "up" ? "✓" : state === "down" ? "✗" : "!";
    const last = result === undefined
      ? "no request yet"
      : `${result} ${ago(one.at("last_answer", "at"), nowMs)}`;
    return `${mark} ${(one.at("url").text ?? "").padEnd(NAME_COLUMNS)}  ${last}`;
  });
  return shortened(lines, max);
}

/** The time of an upstream's answer, as the server wrote it. */
function timeOf(one: Told, name: "last_answer" | "last_error"): string {
  return one.at(name, "at").text ?? "";
}

function transferLines(transfers: Told, max: number): readonly string[] {
  const lines = transfers.at("under_way").list.map((one) => {
    const name = one.at("name").text ?? one.at("nar").text ?? "";
    const received = one.at("received_bytes").number ?? 0;
    const whole = one.at("file_bytes").number;
    const part = whole ? ` of ${formatBytes(whole)}, ${percent(received / whole)}` : "";
    const clients = counted(one.at("client_count").number ?? 0, "client");
    return `${name.padEnd(NAME_COLUMNS)}  ${formatBytes(received)}${part}, ${clients}`;
  });
  return shortened(lines, max);
}

function pinLines(stats: Told): readonly string[] {
  const count = stats.at("pins", "count").number ?? 0;
  if (count === 0) return [];
  const short = stats.at("pins", "roots").list.filter((one) => (one.at("missing").number ?? 0) > 0);
  const whole = short.length === 0 ? "" : `, ${short.length} with missing paths (larder pins)`;
  return [`${counted(count, "root")}${whole}`];
}

function problemLines(stats: Told, { nowMs, max }: ListParts): readonly string[] {
  const problems = stats.at("problems").list.map((one) => ({
    told: one,
    message: one.at("message").text ?? "",
    over_at: one.at("over_at").text ?? null,
  }));
  const kinds = problemKinds(problems).map((kind) => kind.map(({ told }) => told));
  const lines = kinds.slice(0, max).flatMap((kind) => problemKindLines(kind, nowMs));
  return kinds.length > max ? [...lines, `and ${kinds.length - max} more`] : lines;
}

/** A line of one kind, and what to do below it while it lasts. */
function problemKindLines(kind: readonly Told[], nowMs: number): readonly string[] {
  const [first = new Told(undefined)] = kind;
  const times = kind.reduce((sum, one) => sum + (one.at("count").number ?? 1), 0);
  const often = times === 1 ? "" : `${times} times, `;
  const message = first.at("message").text ?? "";
  const isOver = first.at("over_at").timeMs !== undefined;
  const mark = isOver ? "✓" : kind.some(isError) ? "✗" : "!";
  const over = isOver ? `, over ${ago(newest(kind, "over_at"), nowMs)}` : "";
  const subjects = [...new Set(kind.map(subjectOf).filter((subject) => subject !== ""))];
  const told = [message, shortened(subjects, SUBJECTS_MAX).join(", ")].join(" ").trimEnd();
  const line = `${mark} ${told} (${often}${ago(newest(kind, "last_at"), nowMs)}${over})`;
  const facts = first.at("facts");
  const hint = facts.at("hint").text ?? facts.at("remedy").text ?? whatToDo({ message, facts: {} });
  return hint === undefined || isOver ? [line] : [line, `  ${hint}`];
}

function isError(problem: Told): boolean {
  return problem.at("level").text === "error" && problem.at("over_at").timeMs === undefined;
}

function subjectOf(problem: Told): string {
  const facts = problem.at("facts");
  return ["upstream", "nar", "route"].flatMap((name) => facts.at(name).text ?? []).join(" ");
}

function newest(kind: readonly Told[], name: "last_at" | "over_at"): Told {
  const [time] = kind.map((one) => one.at(name).text ?? "").toSorted().toReversed();
  return new Told(time);
}

function ago(at: Told, nowMs: number): string {
  const { timeMs } = at;
  return timeMs === undefined ? "" : `${formatSeconds((nowMs - timeMs) / 1_000)} ago`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(part < 1 && part > 0.995 ? 1 : 0)} %`;
}

function barOf(part: number): string {
  const full = Math.round(Math.min(1, Math.max(0, part)) * BAR_COLUMNS);
  return `[${"#".repeat(full)}${"-".repeat(BAR_COLUMNS - full)}]`;
}
