import { EXIT } from "../base/exit_codes.ts";
import { counted, formatBytes, formatSeconds } from "../base/format_units.ts";
import { boolean } from "../config/kinds/plain.ts";
import { clock } from "../runtime/current.ts";
import type { EventKind } from "../telemetry/events.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { eachStorePath, type FailedPath, nameOf, reportFailures } from "./client/each.ts";
import { evaluateInstallable, INSTALLABLE_FORM, isInstallable } from "./client/installables.ts";
import { notKept } from "./client/pinned_closures.ts";
import { answerJson } from "./client/server_answer.ts";
import { ServerClient } from "./client/server_client.ts";
import { StatusLine } from "./client/status_line.ts";
import {
  readStorePathArguments,
  STORE_PATH_EXPECTED,
  type StorePathArgument,
} from "./client/store_path_argument.ts";
import { NOT_FOUND, WarmClosure, type WarmPart, type WarmProgress } from "./client/warm_closure.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { pin, STORE_PATH_ABOUT } from "./pin.ts";

const EXPECTED = `${STORE_PATH_EXPECTED}; or ${INSTALLABLE_FORM}`;

const FLAGS = {
  pin: { kind: boolean, default: false, help: "Pin each PATH whose closure is complete" },
  ...CLIENT_FLAGS,
} as const;

export const WARM: Command = {
  name: "warm",
  summary: "Fetch closures into the cache",
  operands: "PATH|FLAKE#OUTPUT...",
  about:
    `It requests each closure from the server, as a Nix client does, and drops the bytes. At the end
it lists the missing paths, with exit status 1.

${STORE_PATH_ABOUT}
This machine's nix evaluates the output of a flake, and does not build it.
`,
  examples: [
    ["larder warm ./result --pin", "Fetch all of a build, and keep it"],
    ["larder warm nixpkgs#hello", "Fetch it before a client requests it"],
    [
      "larder warm .#nixosConfigurations.host.config.system.build.toplevel",
      "Fetch the system that CI has built, before its machines update",
    ],
  ],
  flags: FLAGS,
  prose: true,
  runsNix: true,
  run: warmCommand,
};

/** Pauses before a command asks again for what it fetches. */
export const RETRY_DELAYS_MS = [250, 1_000, 4_000];

async function warmCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  const targets = await readTargets(rest, process);
  using client = new ServerClient(flags, process);
  const warm = new WarmClosure({ client, retryDelaysMs: RETRY_DELAYS_MS });
  try {
    const roots = targets.map(({ storePathHash, baseName }) => (
      { storePathHash, name: baseName ?? storePathHash }
    ));
    await follow(warm, roots, process);
  } catch (error) {
    // Reports the progress before the error.
    reportFailures(fetched(warm, process), NOT_FETCHED, process.writeError);
    throw error;
  }
  const failures = fetched(warm, process);
  let status: number = EXIT.ok;
  if (flags.pin) {
    const unpinned = await pinComplete(warm, targets, { client, process });
    const pinned = targets.filter(({ given }) => unpinned.every(({ name }) => name !== given));
    const short = await notKept(client, pinned, KEPT_WITHIN_MS);
    status = reportFailures(unpinned, "not pinned:", process.writeError);
    status = reportFailures(short, NOT_KEPT, process.writeError) || status;
  }
  return await reportMissing(failures, client, process) || status;
}

/** Throws a `ConfigError` for an invalid argument before it evaluates anything. */
async function readTargets(
  args: readonly string[],
  process: CommandProcess,
): Promise<readonly StorePathArgument[]> {
  const installables = args.filter(isInstallable);
  const paths = args.filter((arg) => !isInstallable(arg));
  const hasNone = paths.length === 0 && installables.length > 0;
  const targets = [...hasNone ? [] : readStorePathArguments(paths, process, EXPECTED)];
  for (const installable of installables) {
    const evaluated = await evaluateInstallable(installable, process.nix);
    for (const { given } of evaluated) process.writeOut(`${installable} is ${given}\n`);
    targets.push(...evaluated);
  }
  return targets;
}

/** Verifying the last NAR files takes seconds per gigabyte. */
const KEPT_WITHIN_MS = 30_000;

const NOT_KEPT = "pinned, but not whole in the cache: is its size limit too small?";
const NOT_FETCHED = "not fetched:";

/** Lists the failed paths. A 404 may hide an untrusted upstream. */
async function reportMissing(
  failures: readonly FailedPath[],
  client: ServerClient,
  process: CommandProcess,
): Promise<number> {
  const isAnyAbsent = failures.some(({ reason }) => reason === NOT_FOUND);
  const upstreams = isAnyAbsent ? await untrustedUpstreams(client) : [];
  const reason = "not found, or signed by no key that the server trusts (404)";
  const explained = upstreams.length === 0
    ? failures
    : failures.map((one) => one.reason === NOT_FOUND ? { ...one, reason } : one);
  const status = reportFailures(explained, NOT_FETCHED, process.writeError);
  for (const upstream of upstreams) {
    process.writeError(
      `larder: the server trusts no key of ${upstream}: start it with ` +
        "--cache-upstream-public-key NAME:KEY\n",
    );
  }
  return status;
}

/** Prints the result, and returns the failures. */
function fetched(warm: WarmClosure, process: CommandProcess): readonly FailedPath[] {
  const { fetched: got, alreadyHere } = warm;
  if (got.paths > 0 || alreadyHere.paths === 0) process.writeOut(`fetched ${partWords(got)}\n`);
  if (alreadyHere.paths > 0) process.writeOut(`already here: ${partWords(alreadyHere)}\n`);
  return warm.failures;
}

export function partWords({ paths, nars, bytes }: WarmPart): string {
  return `${counted(paths, "path")}: ${formatBytes(bytes)} in ${counted(nars, "NAR file")}`;
}

/** Fetches the roots, and shows how far it is. */
export async function follow(
  warm: WarmClosure,
  roots: Parameters<WarmClosure["run"]>[0],
  process: CommandProcess,
): Promise<void> {
  const meter = new WarmMeter();
  using _status = new StatusLine(
    process,
    (columns) => meter.line(warm.progress, clock.nowMs(), columns),
  );
  await warm.run(roots);
}

/** Pins complete closures only: a pin promises that everything is there. */
async function pinComplete(
  warm: WarmClosure,
  targets: readonly StorePathArgument[],
  { client, process }: { readonly client: ServerClient; readonly process: CommandProcess },
): Promise<readonly FailedPath[]> {
  const complete = targets.filter(({ storePathHash }) => warm.isComplete(storePathHash));
  const failures = await eachStorePath(complete, async (target) => {
    await pin(client, target);
    process.writeOut(`pinned ${nameOf(target)}\n`);
  });
  const reason = "its closure is not complete; larder pin pins it all the same";
  const holes = targets.filter((target) => !complete.includes(target))
    .map(({ given }) => ({ name: given, reason }));
  return [...failures, ...holes];
}

// The server's text reaches the terminal, so only characters of an upstream's URL are valid.
const URL_REGEXP = /^https?:\/\/[\w.:[\]\/~%+-]{1,200}$/;

const UNTRUSTED: EventKind = "upstream-untrusted";

/**
 * The upstreams whose signatures the server does not trust. Empty if the server does not list them:
 * it is another program, an older larder, or wants another token.
 */
async function untrustedUpstreams(
  client: Pick<ServerClient, "request">,
): Promise<readonly string[]> {
  try {
    const { upstreams = [], problems = [] } = Object(await answerJson(client, "/stats"));
    const last = listOf(upstreams).filter(({ last_answer }) => last_answer?.result === "untrusted")
      .map(({ url }) => url);
    const warned = listOf(problems).filter(({ event }) => event === UNTRUSTED)
      .map(({ facts }) => facts?.upstream);
    return [...new Set([...last, ...warned].map(String))].filter((url) => URL_REGEXP.test(url));
  } catch {
    return [];
  }
}

interface StatsEntry {
  readonly url?: unknown;
  readonly event?: unknown;
  readonly last_answer?: { readonly result?: unknown };
  readonly facts?: { readonly upstream?: unknown };
}

function listOf(value: unknown): readonly StatsEntry[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];
}

/** Time window of the rate: long enough to be steady, short enough to follow. */
const WINDOW_MS = 10_000;

/** A rate of less time would mislead. */
const RATE_FROM_MS = 1_000;

const BAR_COLUMNS = 20;

/** Narrower terminals have no room for a bar beside the figures. */
const BAR_FROM_COLUMNS = 80;

/** Formats the progress of fetching a closure, with rate and time left. */
export class WarmMeter {
  #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** `columns`: the terminal's width; `undefined` for a plain line without a bar. */
  line(progress: WarmProgress, nowMs: number, columns: number | undefined): string {
    const { pathsDone, pathsKnown, bytesDone, bytesKnown } = progress;
    const rate = this.#bytesPerSecond(bytesDone, nowMs);
    const paths = `${pathsDone}/${counted(pathsKnown, "path")}`;
    const figures = [paths, formatBytes(bytesDone)];
    if (rate !== undefined) figures.push(`${formatBytes(rate)}/s`);
    const bytesLeft = bytesKnown - bytesDone;
    if (rate && bytesLeft > 0) figures.push(`${formatSeconds(bytesLeft / rate)} left`);
    const text = figures.join("  ");
    if (columns === undefined || columns < BAR_FROM_COLUMNS) return text;
    return `${barOf(bytesKnown === 0 ? 0 : bytesDone / bytesKnown)} ${text}`;
  }

  /** `undefined` at first. */
  #bytesPerSecond(bytes: number, nowMs: number): number | undefined {
    this.#samples = this.#samples.filter(({ atMs }) => nowMs - atMs <= WINDOW_MS);
    this.#samples.push({ atMs: nowMs, bytes });
    const [first] = this.#samples;
    if (first === undefined || nowMs - first.atMs < RATE_FROM_MS) return undefined;
    return Math.max(0, Math.round((bytes - first.bytes) / ((nowMs - first.atMs) / 1_000)));
  }
}

function barOf(share: number): string {
  const full = Math.floor(Math.min(1, Math.max(0, share)) * BAR_COLUMNS);
  return `[${"#".repeat(full)}${"-".repeat(BAR_COLUMNS - full)}]`;
}
