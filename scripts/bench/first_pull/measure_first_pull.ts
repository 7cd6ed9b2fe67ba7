import { STORE_DIR } from "../../../src/nix/store_path.ts";
import { NixClient } from "../../../tests/support/nix_client.ts";
import { larderLauncher, peerLauncher } from "../launchers.ts";
import { cpuBetween, cpuShares, cpuSum, type CpuTimes } from "../cpu_times.ts";
import { median } from "../rounds.ts";
import { tellPeerFailure } from "../peer_failure.ts";
import type { Launcher, Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";
import { LateUpstream } from "./late_upstream.ts";
import { PATHS_COUNT, type PulledClosure, pulledClosure } from "./pulled_closure.ts";
import { type NarsAlone, narsAloneLine } from "./nars_alone.ts";
import { leastRoundTrips } from "./round_trips.ts";

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
  { how: "substitution, 16 at a time", latencyMs: 20, reachS: 1.1 },
  { how: "substitution, 16 at a time", latencyMs: 100, reachS: 2.2 },
];

/** Larger NARs are not prefetched: the default of `--cache-prefetch-nar-max-size`. */
const PREFETCH_BYTES_MAX = 2 ** 20;

/** Durations of a pull through a new cache, and through the same one again. */
interface Through {
  readonly cold: number;
  readonly warm: number;
  /** CPU time of the cache during the cold pull. */
  readonly cpu: CpuTimes;
}

interface Round {
  readonly larder: Through;
  readonly peer: Through | undefined;
}

interface Scene {
  readonly workplace: Workplace;
  readonly executable: string | undefined;
  readonly closure: PulledClosure;
  readonly upstream: LateUpstream;
  /** The cache that BENCH_PEER names. */
  readonly peer: Launcher | undefined;
}

/**
 * Measures how long a real Nix takes to bring a closure into an empty store. It pulls straight from
 * an upstream whose answers come late, through a new larder, and through one that has it all. The
 * same through the cache that BENCH_PEER names, if any. Returns Markdown.
 */
export async function measureFirstPull(
  workplace: Workplace,
  executable: string | undefined,
): Promise<string> {
  const closure = await pulledClosure(workplace.makeFolder("pulled"));
  await using upstream = new LateUpstream(closure.files);
  const program = Deno.env.get("BENCH_PEER");
  const { publicKey } = closure;
  const origin = { upstreamUrl: upstream.url, publicKey };
  const peer = program === undefined ? undefined : peerLauncher(workplace, program, origin);
  const scene: Scene = { workplace, executable, closure, upstream, peer };
  const rows: string[] = [];
  for (const pull of PULLS) {
    upstream.latencyMs = pull.latencyMs;
    // Once: nothing depends on it, and it takes longest.
    const straightS = await seconds(pull, closure, upstream.url);
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measureRound(scene, pull));
    rows.push(rowOf(scene, { pull, straightS, rounds }));
    console.error(rows.at(-1));
  }
  return table(scene, rows, await narinfosAlone(scene));
}

async function measureRound(scene: Scene, pull: Pull): Promise<Round> {
  const { workplace, closure, peer } = scene;
  const larder = await through(await launch(scene), pull, closure);
  if (peer === undefined) return { larder, peer };
  const folder = workplace.makeFolder(`peer-${crypto.randomUUID()}`);
  const pulled = peer.launch(folder).then((cache) => through(cache, pull, closure));
  return { larder, peer: await pulled.catch(tellPeerFailure) };
}

/** Pulls through a new cache twice, and ends it. */
async function through(cache: Server, pull: Pull, closure: PulledClosure): Promise<Through> {
  await using running = cache;
  const before = running.cpuTimes();
  const cold = await seconds(pull, closure, running.url);
  const cpu = cpuBetween(before, running.cpuTimes());
  return { cold, warm: await seconds(pull, closure, running.url), cpu };
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

/** The NARs that the upstream sends when a client requests all narinfos and no NAR. */
async function narinfosAlone(scene: Scene): Promise<NarsAlone> {
  const { closure, upstream } = scene;
  upstream.latencyMs = 1;
  await using larder = await launch(scene);
  upstream.takeNarPaths();
  for (const path of closure.narinfoPaths.toReversed()) {
    const answer = await fetch(larder.url + path);
    await answer.bytes();
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
  }
  const { prefetch: { nar: { failed, skipped } } } = await (await fetch(`${larder.url}/stats`))
    .json();
  return { narinfos: PATHS_COUNT, narPaths: upstream.takeNarPaths(), failed, skipped };
}

interface Pulled {
  readonly pull: Pull;
  readonly straightS: number;
  readonly rounds: readonly Round[];
}

function rowOf(scene: Scene, { pull, straightS, rounds }: Pulled): string {
  const { how, latencyMs, reachS } = pull;
  const of = (value: (round: Round) => number | undefined) => {
    const seconds = rounds.map(value).filter((one) => one !== undefined);
    const failed = rounds.length - seconds.length;
    const suffix = failed === 0 ? "" : `, ${failed} of ${rounds.length} failed`;
    return (seconds.length === 0 ? "–" : median(seconds).toFixed(2)) + suffix;
  };
  const cold = median(rounds.map(({ larder }) => larder.cold));
  const verdict = cold <= reachS ? "reached" : missed(scene, pull, rounds);
  const cells = [
    `${how}, ${latencyMs} ms`,
    straightS.toFixed(1),
    of(({ larder }) => larder.cold),
    of(({ larder }) => larder.warm),
    ...scene.peer === undefined ? [] : [of(({ peer }) => peer?.cold), of(({ peer }) => peer?.warm)],
    `≤ ${reachS}`,
    verdict,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** The shares of the time of a cold pull: the least for latency, and the processor time. */
function missed({ closure }: Scene, { latencyMs }: Pull, rounds: readonly Round[]): string {
  const topName = closure.top.slice(STORE_DIR.length + 1);
  const { narinfos, nars } = leastRoundTrips(topName, closure.paths, PREFETCH_BYTES_MAX);
  const latencyS = (narinfos + nars) * latencyMs / 1_000;
  const cpu = cpuSum(rounds.map(({ larder }) => larder.cpu));
  const cpuS = [...cpu.threads.values()].reduce((sum, one) => sum + one, 0) / rounds.length;
  return `MISSED; at least ${
    latencyS.toFixed(1)
  } s for ${narinfos} narinfos and ${nars} NARs one ` +
    `after the other; processor time of larder ${cpuS.toFixed(1)} s: ${cpuShares(cpu)}`;
}

function table({ peer }: Scene, rows: readonly string[], nars: NarsAlone): string {
  const columns = [
    ...["straight", "larder, cold", "warm"],
    ...peer === undefined ? [] : [`${peer.name}, cold`, "warm"],
    "reach, cold",
  ];
  return [
    `First pull: a real Nix brings ${PATHS_COUNT} paths into an empty store; medians of ${ROUNDS}` +
    " rounds, seconds; straight from the upstream once.",
    "",
    `| pull, latency of the upstream | ${columns.join(" | ")} | |`,
    `| --- | ${columns.map(() => "---:").join(" | ")} | --- |`,
    ...rows,
    "",
    narsAloneLine(nars),
    "",
  ].join("\n");
}
