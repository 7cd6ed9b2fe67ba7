import { NixClient } from "../../../tests/support/nix_client.ts";
import { larderLauncher } from "../launchers.ts";
import { cpuBetween, cpuShares, cpuSum, type CpuTimes } from "../cpu_times.ts";
import { median } from "../rounds.ts";
import type { Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";
import { LateUpstream } from "./late_upstream.ts";
import { PATHS_COUNT, type PulledClosure, pulledClosure } from "./pulled_closure.ts";

/** Name of the measure, for `--only`. */
export const FIRST_PULL_NAME = "first pull";

const ROUNDS = 3;

/** A pull of a new client, and its most seconds through a cold larder. */
interface Pull {
  readonly how: "nix copy" | "substitution, 16 at a time";
  readonly latencyMs: number;
  readonly reachS: number;
}

const PULLS: readonly Pull[] = [
  { how: "nix copy", latencyMs: 20, reachS: 1.9 },
  { how: "nix copy", latencyMs: 100, reachS: Infinity },
  { how: "substitution, 16 at a time", latencyMs: 20, reachS: 1.1 },
  { how: "substitution, 16 at a time", latencyMs: 100, reachS: 2.2 },
];

/** NARs that narinfos alone may cost an upstream. */
const NARS_MAX = 60;

interface Seconds {
  readonly straight: number;
  readonly cold: number;
  readonly warm: number;
}

interface Round extends Seconds {
  /** CPU time of larder during the cold pull. */
  readonly cpu: CpuTimes;
}

interface Scene {
  readonly workplace: Workplace;
  readonly executable: string | undefined;
  readonly closure: PulledClosure;
  readonly upstream: LateUpstream;
}

/**
 * Measures how long a real Nix takes to bring a closure into an empty store. It pulls straight from
 * an upstream whose answers come late, through a new larder, and through one that has it all.
 * Returns Markdown.
 */
export async function measureFirstPull(
  workplace: Workplace,
  executable: string | undefined,
): Promise<string> {
  const closure = await pulledClosure(workplace.makeFolder("pulled"));
  await using upstream = new LateUpstream(closure.files);
  const scene: Scene = { workplace, executable, closure, upstream };
  const rows: string[] = [];
  for (const pull of PULLS) {
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measureRound(scene, pull));
    rows.push(rowOf(pull, rounds));
    console.error(rows.at(-1));
  }
  return table(rows, await narinfosAlone(scene));
}

async function measureRound(scene: Scene, pull: Pull): Promise<Round> {
  const { upstream, closure } = scene;
  upstream.latencyMs = pull.latencyMs;
  const straight = await seconds(pull, closure, upstream.url);
  await using larder = await launch(scene);
  const before = larder.cpuTimes();
  const cold = await seconds(pull, closure, larder.url);
  const cpu = cpuBetween(before, larder.cpuTimes());
  const warm = await seconds(pull, closure, larder.url);
  return { straight, cold, warm, cpu };
}

/** Duration of a pull into an empty store. Throws unless the closure is complete. */
async function seconds(
  { how }: Pull,
  { top, publicKey }: PulledClosure,
  url: string,
): Promise<number> {
  using client = new NixClient();
  const startedAtMs = performance.now();
  if (how === "nix copy") await client.copyFrom(top, { from: [url], trust: [publicKey] });
  else await substitute(client, { top, publicKey, url });
  const tookMs = performance.now() - startedAtMs;
  const { length } = await client.closureOf(top);
  if (length !== PATHS_COUNT) throw new Error(`${url}: ${length} paths of ${PATHS_COUNT}`);
  return tookMs / 1_000;
}

async function substitute(
  client: NixClient,
  { top, publicKey, url }: { top: string; publicKey: string; url: string },
): Promise<void> {
  const settings = {
    substituters: url,
    "trusted-public-keys": publicKey,
    // Before Nix 2.13 substitutions are jobs like builds.
    "max-jobs": "16",
    "max-substitution-jobs": "16",
  };
  const words = Object.entries(settings).flatMap(([name, value]) => ["--option", name, value]);
  await client.run("nix-store", [...words, "--realise", top]);
}

/** A larder that has nothing yet, with its defaults. */
async function launch({ workplace, executable, closure, upstream }: Scene): Promise<Server> {
  const { publicKey } = closure;
  const flags = { "cache-negative-ttl": "60s" };
  const launcher = larderLauncher(workplace, {
    upstreamUrl: upstream.url,
    publicKey,
    executable,
    flags,
  });
  return await launcher.launch(workplace.makeFolder(`larder-${crypto.randomUUID()}`));
}

/** NARs that the upstream sends when a client requests all narinfos and no NAR. */
async function narinfosAlone(scene: Scene): Promise<number> {
  const { closure, upstream } = scene;
  upstream.latencyMs = 1;
  await using larder = await launch(scene);
  upstream.takeNarRequests();
  for (const path of closure.narinfoPaths.toReversed()) {
    const answer = await fetch(larder.url + path);
    await answer.bytes();
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
  }
  return upstream.takeNarRequests();
}

function rowOf({ how, latencyMs, reachS }: Pull, rounds: readonly Round[]): string {
  const of = (key: keyof Seconds) => median(rounds.map((round) => round[key]));
  const cold = of("cold");
  const reach = reachS === Infinity ? "–" : `≤ ${reachS}`;
  const missed = `MISSED; processor time of larder: ${cpuShares(cpuSum(rounds.map((r) => r.cpu)))}`;
  const verdict = reachS === Infinity ? "" : cold <= reachS ? "reached" : missed;
  const cells = [
    `${how}, ${latencyMs} ms`,
    ...[of("straight"), cold, of("warm")].map((value) => value.toFixed(1)),
    reach,
    verdict,
  ];
  return `| ${cells.join(" | ")} |`;
}

function table(rows: readonly string[], nars: number): string {
  const verdict = nars <= NARS_MAX ? "reached" : "MISSED";
  return [
    `First pull: a real Nix brings ${PATHS_COUNT} paths into an empty store; medians of ${ROUNDS}` +
    " rounds, seconds.",
    "",
    "| pull, latency of the upstream | straight | larder, cold | warm | reach, cold | |",
    "| --- | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
    "",
    `${PATHS_COUNT} narinfos and no NAR cost the upstream ${nars} NARs ` +
    `(≤ ${NARS_MAX}: ${verdict}).`,
    "",
  ].join("\n");
}
