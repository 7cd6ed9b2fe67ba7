import { EXIT } from "../base/exit_codes.ts";
import { counted, formatBytes, formatSpan } from "../base/format_units.ts";
import { boolean } from "../config/kinds/plain.ts";
import { nameOfBaseName, STORE_DIR } from "../nix/store_path.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { ClosurePlan, type PlannedEntry } from "./client/closure_plan.ts";
import { Derivations, type PlanRoot } from "./client/derivations.ts";
import { reportFailures } from "./client/each.ts";
import { evaluateInstallable, INSTALLABLE_FORM, isInstallable } from "./client/installables.ts";
import type { AnsweredUpstream } from "./client/plan_answer.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import { StatusLine } from "./client/status_line.ts";
import {
  type Links,
  readStorePathArguments,
  STORE_PATH_EXPECTED,
  type StorePathArgument,
} from "./client/store_path_argument.ts";
import { WarmClosure } from "./client/warm_closure.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { STORE_PATH_ABOUT } from "./pin.ts";
import { follow, partWords, RETRY_DELAYS_MS } from "./warm.ts";

const FLAGS = {
  fetch: { kind: boolean, default: false, help: "Fetch what is upstream into the cache" },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
} as const;

export const PLAN: Command = {
  name: "plan",
  summary: "Tell what a pull would fetch, wait for and build",
  operands: "PATH|DRV|FLAKE#OUTPUT...",
  about: `Before an update, it asks the server where each path of the closures is: here, upstream or
nowhere. It fetches no NAR file. A client builds what is nowhere from its derivation, of which the
plan has what the build needs, too. What the client has in its own store already is in the plan as
well.

The exit status is 0 if all paths are here or upstream, 3 if some are nowhere, and 1 if the command
fails, or an upstream did not answer about some paths.

${STORE_PATH_ABOUT}DRV is a .drv file in the store: all its outputs, or some, as in x.drv^out,dev.
This machine's nix evaluates the output of a flake, and does not build it. larder switches the
experimental features nix-command and flakes on for that.
`,
  examples: [
    ["larder plan nixpkgs#hello", "Tell where its closure is, or what its build needs"],
    [
      "larder plan .#nixosConfigurations.host.config.system.build.toplevel --fetch",
      "Fetch what the next update needs, and list what it has to build",
    ],
    ["larder plan --json ./result | jq .nowhere.paths", "Count the paths that nobody has"],
  ],
  flags: FLAGS,
  prose: true,
  runsNix: true,
  run: planCommand,
};

async function planCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  const derivations = new Derivations(process);
  const roots = await readRoots(rest, derivations, process);
  using client = new ServerClient(flags, process);
  const plan = new ClosurePlan({ client, derivations });
  {
    using _status = new StatusLine(process, () => `${counted(plan.count, "path")} looked up`);
    await plan.run(roots).catch(explainRefusal);
  }
  const entries = plan.entries;
  const summary = summaryOf(entries, plan.upstreams);
  process.writeOut(
    flags.json
      ? `${JSON.stringify(jsonOf(summary, plan))}\n`
      : `${sentenceOf(summary)}\n${listOf(entries)}`,
  );
  for (const { url } of plan.upstreams.filter(({ isUp }) => !isUp)) {
    process.writeError(`larder: ${url} is down: what it alone has counts as nowhere\n`);
  }
  const fetched = flags.fetch ? await fetch(client, entries, flags.json, process) : EXIT.ok;
  if (fetched !== EXIT.ok || summary.unknown.paths > 0) return EXIT.failed;
  return summary.nowhere.paths > 0 ? EXIT.nowhere : EXIT.ok;
}

/** Throws a `ConfigError` for an invalid argument before it evaluates anything. */
async function readRoots(
  args: readonly string[],
  derivations: Derivations,
  process: CommandProcess,
): Promise<readonly PlanRoot[]> {
  const others = args.filter((arg) => !isInstallable(arg));
  const operands = others.length === 0 && args.length > 0
    ? { paths: [], derivations: [] }
    : readPlanOperands(others, process);
  const roots: PlanRoot[] = operands.paths.map(({ storePathHash, baseName }) => ({
    storePathHash,
    name: baseName && nameOfBaseName(baseName),
  }));
  for (const { path, outputs } of operands.derivations) {
    roots.push(...await derivations.roots(path, outputs));
  }
  for (const installable of args.filter(isInstallable)) {
    for (const one of await evaluateInstallable(installable, process.nix)) {
      const { storePathHash, baseName, derivation } = one;
      roots.push({ storePathHash, name: nameOfBaseName(baseName), derivation });
    }
  }
  return roots;
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof ServerRefusal)) throw error;
  if (error.status !== 503) throw error;
  throw new ServerRefusal(503, "the server makes other plans at the moment: try again in a minute");
}

/** "of 1,412 paths 1,380 are here, 25 upstream (312.0 MiB, some 40 s at today's rate), …" */
function sentenceOf({ paths, here, upstream, nowhere, unknown }: PlanSummary): string {
  const is = here.paths === 1 ? "is" : "are";
  const parts = [
    `of ${counted(paths, "path")} ${number(here.paths)} ${is} here`,
    `${number(upstream.paths)} upstream${
      upstream.paths === 0 ? "" : ` (${formatBytes(upstream.bytes)}, ${timeOf(upstream)})`
    }`,
    `${number(nowhere.paths)} nowhere${builtWords(nowhere)}`,
  ];
  if (unknown.paths > 0) parts.push(`${number(unknown.paths)} unknown`);
  return parts.join(", ");
}

/** Without a `.drv` there is nothing to build a path from. */
function builtWords({ paths, withoutDerivation: without }: PlanSummary["nowhere"]): string {
  if (paths === 0) return "";
  const built = paths - without;
  const them = paths === 1 ? "it" : "them";
  if (built === 0) return `: no .drv is known to build ${them} from`;
  if (without === 0) return paths === 1 ? ": it will be built" : ": they will be built";
  return `: ${number(built)} will be built, no .drv is known for ${number(without)}`;
}

function timeOf({ seconds, unmeasuredBytes }: PlanSummary["upstream"]): string {
  if (seconds === undefined) return "no rate measured yet";
  const span = seconds < 1 ? "1 s" : formatSpan(seconds);
  const about = unmeasuredBytes > 0 ? "over" : seconds < 1 ? "under" : "some";
  return `${about} ${span} at today's rate`;
}

function number(count: number): string {
  return count.toLocaleString("en-US");
}

const TITLES = {
  upstream: "upstream",
  nowhere: "nowhere",
  unknown:
    "unknown: an upstream failed, or the storage, or no trusted key signs it; see larder explain",
} as const;

/** The paths that are not here, the largest first. */
function listOf(entries: readonly PlannedEntry[]): string {
  return (Object.keys(TITLES) as (keyof typeof TITLES)[]).map((state) => {
    const those = entries.filter((entry) => entry.state === state)
      .toSorted((one, other) => (other.bytes ?? 0) - (one.bytes ?? 0));
    return those.length === 0 ? "" : `\n${TITLES[state]}:\n${those.map(lineOf).join("")}`;
  }).join("");
}

function lineOf({ hash, name, bytes, upstreams: [upstream] }: PlannedEntry): string {
  const size = bytes === undefined ? "" : `  ${formatBytes(bytes)}`;
  const from = upstream === undefined ? "" : `  ${upstream}`;
  return `  ${STORE_DIR}/${hash}${name === undefined ? "" : `-${name}`}${size}${from}\n`;
}

function jsonOf(summary: PlanSummary, { entries, upstreams }: ClosurePlan): object {
  const { seconds = null, unmeasuredBytes, ...upstream } = summary.upstream;
  const { withoutDerivation, ...nowhere } = summary.nowhere;
  return {
    ...summary,
    nowhere: { ...nowhere, without_derivation: withoutDerivation },
    upstream: { ...upstream, seconds, unmeasured_bytes: unmeasuredBytes },
    upstreams: upstreams.map(({ url, isUp, bytesPerSecond = null, latencyMs = null }) => ({
      ...{ url, is_up: isUp, bytes_per_second: bytesPerSecond, latency_ms: latencyMs },
    })),
    list: entries.map(({ hash, name = null, state, nar = null, bytes = null, ...more }) => ({
      ...{ hash, name, state, nar, bytes, upstreams: more.upstreams },
      derivation: more.derivation ?? null,
    })),
  };
}

/** Fetches what is upstream. Returns the exit status. */
async function fetch(
  client: ServerClient,
  entries: readonly PlannedEntry[],
  isQuiet: boolean,
  process: CommandProcess,
): Promise<number> {
  const wanted = entries.filter(({ state }) => state === "upstream");
  if (wanted.length === 0) return EXIT.ok;
  const warm = new WarmClosure({
    client,
    retryDelaysMs: RETRY_DELAYS_MS,
    followsReferences: false,
  });
  const roots = wanted.map(({ hash, name }) => (
    { storePathHash: hash, name: name === undefined ? hash : `${hash}-${name}` }
  ));
  await follow(warm, roots, process);
  if (!isQuiet) process.writeOut(`\nfetched ${partWords(warm.fetched)}\n`);
  return reportFailures(warm.failures, "not fetched:", process.writeError);
}

/** A `.drv` of the store, and the outputs of it that are meant. */
interface DerivationOperand {
  /** Its store path. */
  readonly path: string;
  readonly outputs: readonly string[] | "all";
}

/** Operands of `larder plan`, but for installables. */
interface PlanOperands {
  readonly paths: readonly StorePathArgument[];
  readonly derivations: readonly DerivationOperand[];
}

/** `x.drv^out,dev`, as Nix writes it; older ones write `x.drv!out`. */
const OUTPUTS_REGEXP = /^(.*\.drv)[\^!]([\w,*+.?=-]+)$/;

const EXPECTED = `${STORE_PATH_EXPECTED}; a .drv file; or ${INSTALLABLE_FORM}`;

/** Reads all arguments. Throws a `ConfigError` with each invalid one, or if there are none. */
function readPlanOperands(args: readonly string[], links: Links): PlanOperands {
  const paths: StorePathArgument[] = [];
  const derivations = new Map<string, DerivationOperand>();
  const split = args.map((arg) => {
    const [, path = arg, outputs = "*"] = OUTPUTS_REGEXP.exec(arg) ?? [];
    return { path, outputs: outputs.split(",") };
  });
  const read = readStorePathArguments(split.map(({ path }) => path), links, EXPECTED);
  for (const one of read) {
    if (one.baseName?.endsWith(".drv") !== true) {
      paths.push(one);
      continue;
    }
    const path = `${STORE_DIR}/${one.baseName}`;
    const names = split.filter((other) => other.path === one.given).flatMap((other) =>
      other.outputs
    );
    derivations.set(path, { path, outputs: names.includes("*") ? "all" : names });
  }
  return { paths, derivations: [...derivations.values()] };
}

/** NARs that Nix fetches at a time, by its default of max-substitution-jobs. */
const AT_A_TIME = 16;

/** The figures of a plan. Paths with the same NAR file have its bytes once. */
interface PlanSummary {
  readonly paths: number;
  readonly here: { readonly paths: number; readonly bytes: number };
  readonly upstream: UpstreamPart;
  readonly nowhere: {
    readonly paths: number;
    /** Those of which the plan knows no `.drv`: a client can build none of them by the plan. */
    readonly withoutDerivation: number;
  };
  readonly unknown: { readonly paths: number };
}

interface UpstreamPart {
  readonly paths: number;
  readonly nars: number;
  readonly bytes: number;
  /**
   * Time for the bytes of measured upstreams, one after the other, and for the answers, of which
   * Nix waits for 16 at a time. `undefined` without any.
   */
  readonly seconds: number | undefined;
  /** Bytes of upstreams that have sent no NAR of some size since the start of the server. */
  readonly unmeasuredBytes: number;
}

export function summaryOf(
  entries: readonly PlannedEntry[],
  upstreams: readonly AnsweredUpstream[],
): PlanSummary {
  const of = (state: PlannedEntry["state"]) => entries.filter((entry) => entry.state === state);
  const [here, upstream, nowhere] = [of("here"), of("upstream"), of("nowhere")];
  return {
    paths: entries.length,
    here: { paths: here.length, bytes: bytesOf(narsOf(here)) },
    upstream: { paths: upstream.length, ...transferOf(narsOf(upstream), upstreams) },
    nowhere: {
      paths: nowhere.length,
      withoutDerivation: nowhere.filter(({ derivation }) => derivation === undefined).length,
    },
    unknown: { paths: of("unknown").length },
  };
}

function transferOf(
  nars: readonly PlannedEntry[],
  upstreams: readonly AnsweredUpstream[],
): Omit<UpstreamPart, "paths"> {
  const measured = new Map(upstreams.map((one) => [one.url, one]));
  let seconds: number | undefined;
  let unmeasuredBytes = 0;
  for (const { bytes = 0, upstreams: [sender = ""] } of nars) {
    const { bytesPerSecond: rate = 0, latencyMs = 0 } = measured.get(sender) ?? {};
    if (rate <= 0) unmeasuredBytes += bytes;
    else seconds = (seconds ?? 0) + bytes / rate + Math.max(0, latencyMs) / 1_000 / AT_A_TIME;
  }
  return {
    nars: nars.length,
    bytes: bytesOf(nars),
    seconds: seconds === undefined ? undefined : Math.round(seconds * 10) / 10,
    unmeasuredBytes,
  };
}

/** One entry of each NAR file. */
function narsOf(entries: readonly PlannedEntry[]): readonly PlannedEntry[] {
  return [...new Map(entries.map((entry) => [entry.nar ?? entry.hash, entry])).values()];
}

function bytesOf(nars: readonly PlannedEntry[]): number {
  return nars.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}
