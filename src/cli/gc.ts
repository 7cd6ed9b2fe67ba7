import { Failure } from "../base/failure.ts";
import { boolean } from "../config/kinds/plain.ts";
import { size } from "../config/kinds/size.ts";
import type { Kind } from "../config/kinds/option.ts";
import { limitOrigin, type LimitSource } from "../space/size_limit.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import { followedLines, type FollowLimits, parsed, unreadable } from "./client/followed_lines.ts";
import { StatusLine } from "./client/status_line.ts";
import type { Command } from "./command.ts";
import { EXIT } from "../base/exit_codes.ts";
import { noOperands, parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";

const optionalSize: Kind<number> = size;

const FLAGS = {
  target: { kind: optionalSize, help: "Evict until no more than this is used, such as 10G" },
  "dry-run": {
    kind: boolean,
    default: false,
    help: "Change nothing, only print how much would go",
  },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
} as const;

export const GC: Command = {
  name: "gc",
  summary: "Evict the least recently used paths now",
  about: `Without --target it evicts as far as the server does by itself, below its size limit.
It never evicts protected paths, or files that are being read or written. It ends with status 1 if
that keeps it from its target. If you interrupt the command, the run stops where it is.
`,
  examples: [
    ["larder gc --dry-run --target 50G", "Show how much larder would evict to keep 50 GiB"],
    ["larder gc", "Make room now, before a large pull"],
  ],
  flags: FLAGS,
  prose: true,
  run: gcCommand,
};

async function gcCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  noOperands(rest);
  using client = new ServerClient(flags, process);
  const answer = await start(client, flags.target, flags["dry-run"]);
  const done = await follow(answer, process);
  process.writeOut(flags.json ? `${JSON.stringify(done)}\n` : reportOf(done, flags.target));
  return done.reached ? EXIT.ok : EXIT.failed;
}

async function start(
  client: ServerClient,
  target: number | undefined,
  dryRun: boolean,
): Promise<Response> {
  const parameters = new URLSearchParams({
    ...(target === undefined ? {} : { target: String(target) }),
    ...(dryRun ? { "dry-run": "true" } : {}),
  });
  try {
    return await client.request("POST", `/gc?${parameters}`);
  } catch (error) {
    if (!(error instanceof ServerRefusal)) throw error;
    if (error.status === 403 && error.missing === undefined) {
      throw new ServerRefusal(
        403,
        "without admin tokens the server accepts evictions from its own machine alone: run this " +
          "there, or set --cache-admin-token there",
      );
    }
    if (error.status !== 400 || target !== undefined) throw error;
    throw new ServerRefusal(
      400,
      "the server has no size limit: give --target SIZE",
    );
  }
}

/** Shows the progress until the run is over. Throws if the answer breaks off. */
async function follow(answer: Response, process: CommandProcess): Promise<Done> {
  let last: Progress | undefined;
  using _status = new StatusLine(process, () => progressLine(last));
  for await (const event of followedEvents(answer)) {
    if (event.event === "done") return event;
    last = event;
  }
  throw new Failure("corrupt", "Cannot follow the run: it failed; see the server's log");
}

/** The events of a run, as the server sends them. Throws at a limit, or if the answer breaks off. */
export async function* followedEvents(
  answer: Response,
  limits: FollowLimits = {},
): AsyncGenerator<Progress | Done> {
  for await (const line of followedLines(answer, limits)) yield readEvent(line);
}

const PROGRESS_SIZES = ["freed_bytes", "evicted_entries", "used_bytes"] as const;
const DONE_SIZES = [
  ...PROGRESS_SIZES,
  "target_bytes",
  "evicted_files",
  "reserved_bytes",
  "pinned_bytes",
  "busy_bytes",
] as const;

type Progress = { readonly event: "progress" } & Sizes<typeof PROGRESS_SIZES>;

interface Done extends Sizes<typeof DONE_SIZES> {
  readonly event: "done";
  readonly dry_run: boolean;
  readonly limit_bytes: number | null;
  readonly limit_source: LimitSource;
  readonly reached: boolean;
}

type Sizes<Names extends readonly string[]> = Readonly<Record<Names[number], number>>;

function readEvent(line: string): Progress | Done {
  const event = parsed(line);
  const isSize = (name: string) => Number.isFinite(event[name]);
  if (event["event"] === "progress" && PROGRESS_SIZES.every(isSize)) {
    return event as unknown as Progress;
  }
  const hasLimit = event["limit_bytes"] === null || isSize("limit_bytes");
  const isDone = event["event"] === "done" && DONE_SIZES.every(isSize) && hasLimit;
  if (isDone && typeof event["reached"] === "boolean") return event as unknown as Done;
  throw unreadable();
}

function progressLine(last: Progress | undefined): string {
  if (last === undefined) return "evicting";
  const { freed_bytes, evicted_entries, used_bytes } = last;
  const paths = counted(evicted_entries, "path");
  return `freed ${formatBytes(freed_bytes)} of ${paths}, ${formatBytes(used_bytes)} still used`;
}

/** The result of a run for people. `target`: the requested size, if any. */
function reportOf(done: Done, target?: number): string {
  const freed = [
    done.dry_run ? "Would free" : "Freed",
    `${formatBytes(done.freed_bytes)}: ${counted(done.evicted_entries, "path")},`,
    `${counted(done.evicted_files, "NAR file")}.`,
  ].join(" ");
  const limit = [
    done.limit_bytes === null ? "no limit" : `limit ${formatBytes(done.limit_bytes)}`,
    `by ${limitOrigin(done.limit_source)}`,
  ].join(" ");
  const used = [
    `${done.dry_run ? "Used then" : "Used now"}: ${formatBytes(done.used_bytes)}`,
    `(target ${formatBytes(done.target_bytes)}, ${limit}).`,
  ].join(" ");
  const kept = [
    [done.pinned_bytes, "pinned"],
    [done.busy_bytes, "in use"],
    [done.reserved_bytes, "reserved for downloads"],
  ] as const;
  const shown = kept.filter(([bytes]) => bytes > 0)
    .map(([bytes, why]) => `${formatBytes(bytes)} ${why}`);
  const lines = [freed, used, ...shown.length > 0 ? [`Protected: ${shown.join(", ")}.`] : []];
  if (!done.reached) lines.push(`The target was not reached. ${adviceFor(done, target)}`);
  return lines.map((line) => `${line}\n`).join("");
}

/** More room helps only if the size limit was the target. */
function adviceFor(done: Done, target: number | undefined): string {
  if (done.pinned_bytes <= done.target_bytes) {
    return "Run it again when the downloads and reads in progress are over.";
  }
  const unpin = "Pins hold more than that: unpin something (larder pins)";
  const hasOnlyLimit = target === undefined && done.limit_bytes !== null;
  if (!hasOnlyLimit) return `${unpin}.`;
  return done.limit_source === "disk"
    ? `${unpin}, or make room on the server's disk.`
    : `${unpin}, or give the server more room (--cache-max-size).`;
}
