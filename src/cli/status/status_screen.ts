import {
  counted,
  formatAgo,
  formatBytes,
  formatDate,
  formatSpan,
} from "../../base/format_units.ts";
import { visible } from "../../base/visible.ts";
import { wrapped } from "../../base/wrapped.ts";
import { formatLatency, formatPercent } from "../../http/page/format.ts";
import {
  isInVerdict,
  type ProblemKind,
  problemKinds,
  remedyOf,
  SUBJECTS_MAX,
  subjectWords,
} from "../../http/stats/problem_kinds.ts";
import { titleOf } from "../../http/stats/problem_words.ts";
import { upstreamStateOf } from "../../http/stats/shown_state.ts";
import type {
  MemberStats,
  ProblemStats,
  TransferStats,
  UpstreamStats,
} from "../../http/stats/stats.ts";
import { transferWords } from "../../http/stats/transfer_words.ts";
import {
  lastAnswerOf,
  lastAnswerWords,
  lastErrorWords,
  rateWords,
  slownessWords,
  UPSTREAM_STATES,
  waitWords,
} from "../../http/stats/upstream_words.ts";
import { clock } from "../../runtime/current.ts";
import { limitOrigin, type LimitSource } from "../../space/size_limit.ts";
import type { UpstreamState } from "../../upstream/upstream_health.ts";
import type { ServerJson } from "../client/server_json.ts";
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

const NAME_COLUMNS = 34;

const MARKS: Readonly<Record<UpstreamState, string>> = {
  ...{ up: "✓", down: "✗" },
  ...{ untrusted: "!", status: "!", nars: "!", garbage: "!" },
};

/** Bounds of a list, and the time of the figures. */
interface ListParts {
  readonly nowMs: number;
  readonly max: number;
}

/** A line for each upstream: its state, why it failed, and its last answer. */
function upstreamLines(stats: ServerJson, { nowMs, max }: ListParts): readonly string[] {
  return shortened(stats.at("upstreams").list.map((one) => upstreamLine(one, nowMs)), max);
}

function upstreamLine(one: ServerJson, nowMs: number): string {
  const reason = one.at("last_error", "reason").text;
  const signs = {
    is_up: one.at("is_up").isTrue,
    sends_nars: one.at("sends_nars").isTrue,
    last_answer: answerOf(one.at("last_answer")),
    last_nar_answer: answerOf(one.at("last_nar_answer")),
    last_error: reason === undefined ? null : errorOf(one.at("last_error"), reason),
    latencies_ms: one.at("latencies_ms").list.map((latency) => latency.number ?? 0),
  };
  const state = upstreamStateOf(signs, nowMs);
  const [answer, { last_error }] = [lastAnswerOf(signs), signs];
  const detail = state === "up" || last_error === null
    ? `, ${lastAnswerWords(signs)}${answer === null ? "" : ` ${ago([answer.at], nowMs)}`}`
    : `: ${lastErrorWords(last_error)} (${ago([last_error.at], nowMs)})`;
  const url = (one.at("url").text ?? "").padEnd(NAME_COLUMNS);
  const more = [
    waitWords(waitsOf(one.at("waits"))),
    slownessWords(slownessOf(one)),
    speedWords(one),
  ].filter((words) => words !== undefined).map((words) => `; ${words}`).join("");
  return `${MARKS[state]} ${url}  ${UPSTREAM_STATES[state]}${detail}${more}`;
}

/** An upstream's answer, with its time as the server wrote it. */
function answerOf(answer: ServerJson): UpstreamStats["last_answer"] {
  const result = answer.at("result").text;
  return result === undefined ? null : { result, at: answer.at("at").text ?? "" };
}

function slownessOf(one: ServerJson): Pick<UpstreamStats, "slow_answers" | "last_wait"> {
  const last = one.at("last_wait");
  const path = last.at("path").text;
  return {
    slow_answers: {
      count: one.at("slow_answers", "count").number ?? 0,
      longest_ms: one.at("slow_answers", "longest_ms").number ?? 0,
    },
    last_wait: path === undefined ? null : {
      ...{ path, ms: last.at("ms").number ?? 0, at: last.at("at").text ?? "" },
      bytes_per_second: last.at("bytes_per_second").number ?? null,
    },
  };
}

/** The median latency, and the rate of NARs. */
function speedWords(one: ServerJson): string | undefined {
  const latencies = one.at("latencies_ms").list.map((latency) => latency.number ?? 0)
    .toSorted((a, b) => a - b);
  const median = latencies[Math.floor(latencies.length / 2)];
  const rate = rateWords(one.at("nar_bytes_per_second").number ?? null);
  const words = [
    ...median === undefined ? [] : [`median ${formatLatency(median)}`],
    ...rate === undefined ? [] : [rate],
  ];
  return words.length === 0 ? undefined : words.join(", ");
}

function waitsOf(waits: ServerJson): UpstreamStats["waits"] {
  const of = (name: keyof UpstreamStats["waits"]) => waits.at(name).number ?? 0;
  return {
    ...{ count: of("count"), late: of("late") },
    ...{ total_ms: of("total_ms"), longest_ms: of("longest_ms") },
  };
}

function errorOf(error: ServerJson, reason: string) {
  return {
    ...{ reason, status: error.at("status").number ?? null, at: error.at("at").text ?? "" },
    request: error.at("request").text === "nar" ? "nar" : "narinfo",
  } as const;
}

/** A line for each transfer of a direction: its package, how far it is, and for how many. */
function transferLines(transfers: ServerJson, max: number): readonly string[] {
  return shortened(transfers.at("under_way").list.map(transferLine), max);
}

function transferLine(one: ServerJson): string {
  const name = one.at("name").text ?? one.at("nar").text ?? "";
  const received_bytes = one.at("received_bytes").number ?? 0;
  const file_bytes = one.at("file_bytes").number ?? null;
  const facts = transferWords({
    ...{ received_bytes, file_bytes, state: stateOf(one) },
    bytes_per_second: one.at("bytes_per_second").number ?? null,
    seconds_left: one.at("seconds_left").number ?? null,
  });
  const part = file_bytes ? [formatPercent(Math.min(1, received_bytes / file_bytes))] : [];
  const clients = counted(one.at("client_count").number ?? 0, "client");
  return `${name.padEnd(NAME_COLUMNS)}  ${[...part, ...facts, clients].join(", ")}`;
}

function stateOf(one: ServerJson): TransferStats["state"] {
  const state = one.at("state").text;
  return state === "opening" || state === "verifying" ? state : "receiving";
}

/** A line for each kind. Below it stands the remedy while it lasts, unless the verdict has it. */
function problemLines(stats: ServerJson, { nowMs, max }: ListParts): readonly string[] {
  const kinds = problemKinds(stats.at("problems").list.map(problemOf));
  const hints = stats.at("verdict", "faults").list.map((fault) => fault.at("hint").text);
  const lines = kinds.slice(0, max).flatMap((kind) => {
    const remedy = remedyOf(kind);
    const isNew = remedy !== "" && !isInVerdict(remedy, hints);
    return [problemKindLine(kind, nowMs), ...isNew ? [`  ${remedy}`] : []];
  });
  return kinds.length > max ? [...lines, `and ${kinds.length - max} more`] : lines;
}

const MEMBER_MARKS: Readonly<Record<MemberStats["state"], string>> = {
  ...{ running: "✓", draining: "–", gone: "✗", left: "–" },
};

/** A line for each member: its state, its last report and its URL. Nothing for a larder that is alone. */
function memberLines(stats: ServerJson, { nowMs, max }: ListParts): readonly string[] {
  return shortened(stats.at("members").list.map((one) => memberLine(one, nowMs)), max);
}

function memberLine(one: ServerJson, nowMs: number): string {
  const state = one.at("state").text ?? "";
  const mark = Object.entries(MEMBER_MARKS).find(([name]) => name === state)?.[1] ?? "?";
  const isSilent = state === "gone" || state === "left";
  const startedMs = one.at("started_at").timeMs;
  const up = startedMs === undefined ? "" : `, up ${formatSpan((nowMs - startedMs) / 1_000)}`;
  const reported = `, last report ${ago([one.at("reported_at").text ?? ""], nowMs)}`;
  const host = one.at("host").text || one.at("id").text || "";
  const name = one.at("is_self").isTrue ? `${host} (this one)` : host;
  const problems = one.at("problems").number ?? 0;
  const more = problems === 0 || isSilent ? "" : `, ${counted(problems, "problem")}`;
  const url = one.at("url").text;
  const place = url === undefined ? "" : `, at ${url}`;
  return `${mark} ${name.padEnd(NAME_COLUMNS)}  ${state}${isSilent ? reported : up}${more}${place}`;
}

function problemOf(one: ServerJson) {
  const level: ProblemStats["level"] = one.at("level").text === "error" ? "error" : "warn";
  return {
    ...{ level, part: one.at("part").text ?? "", event: one.at("event").text ?? "" },
    message: one.at("message").text ?? "",
    facts: one.at("facts").facts,
    count: one.at("count").number ?? 1,
    last_at: one.at("last_at").text ?? "",
    over_at: one.at("over_at").text ?? null,
  };
}

function problemKindLine(
  kind: ProblemKind<ReturnType<typeof problemOf>>,
  nowMs: number,
): string {
  const title = titleOf(kind[0]);
  const present = kind.filter(({ over_at }) => over_at === null);
  const isOver = present.length === 0;
  const mark = isOver ? "✓" : present.some(({ level }) => level === "error") ? "✗" : "!";
  const count = kind.reduce((sum, one) => sum + one.count, 0);
  const often = count === 1 ? [] : [`${count.toLocaleString("en-US")} times`];
  const over = isOver ? [`over ${ago(kind.map(({ over_at }) => over_at ?? ""), nowMs)}`] : [];
  const times = [...often, ago(kind.map(({ last_at }) => last_at), nowMs), ...over].join(", ");
  const subjects = kind.map((one) => subjectWords(one, title)).filter((words) => words !== "");
  const about = shortened(subjects, SUBJECTS_MAX).join("; ");
  return `${mark} ${title} (${times})${about === "" ? "" : `: ${about}`}`;
}

/** Since the newest of some times. */
function ago(times: readonly string[], nowMs: number): string {
  return formatAgo(Date.parse(times.toSorted().at(-1) ?? ""), nowMs);
}

function shortened(lines: readonly string[], max: number): readonly string[] {
  const hidden = lines.length - max;
  return hidden <= 0 ? lines : [...lines.slice(0, -hidden), `and ${hidden} more`];
}
