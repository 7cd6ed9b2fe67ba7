import { Corpus } from "./corpus.ts";
import { cpuSum } from "./cpu_times.ts";
import type { Durations } from "./durations.ts";
import type { Bench, Measure } from "./figure.ts";
import {
  directoryLauncher,
  larderLauncher,
  type LarderParts,
  type Origin,
  peerLauncher,
  proxyLauncher,
} from "./launchers.ts";
import type { BenchOptions } from "./options.ts";
import { launchUnlessPeerFails, survivePeer } from "./peer_failure.ts";
import type { Result } from "./report.ts";
import { joined, type Measured, runMeasure, type Values } from "./rounds.ts";
import { type Launcher, PEER, type Server } from "./server.ts";
import { REPOSITORY, type Workplace } from "./workplace.ts";

/** Each set of processes starts with empty folders: two equal processes differ for their life. */
export async function runAll(
  workplace: Workplace,
  options: BenchOptions,
  measures: readonly Measure[],
  durations: Durations,
): Promise<readonly Result[]> {
  const corpus = new Corpus(workplace.makeFolder("upstream"));
  await using upstream = await directoryLauncher(workplace, corpus.folder)
    .launch(workplace.makeFolder("nginx-upstream"));
  const origin = { upstreamUrl: upstream.url, publicKey: corpus.publicKey.text };
  const launchers = await launchersOf(workplace, options, { origin, folder: corpus.folder });
  const variants = variantsOf(workplace, options, origin);
  const sets = new Map<Measure, Measured[]>(measures.map((measure) => [measure, []]));
  const peerBroke = new Set<Measure>();
  for (let set = 0; set < options.processes; set++) {
    await using running = new AsyncDisposableStack();
    const servers: Server[] = [];
    for (const launcher of launchers) {
      const folder = workplace.makeFolder(`${launcher.name.replaceAll(/\W/g, "-")}-${set}`);
      const server = await launchUnlessPeerFails(launcher, folder);
      if (server !== undefined) servers.push(running.use(server));
    }
    const bench: Bench = { ...options, workplace, corpus, launchers, variants, servers };
    for (const measure of measures) {
      if (measure.launches === "first set" && set > 0) continue;
      const name = measure.figures[0]?.name ?? "";
      const { value, isPeerBroken } = await durations.part(
        name,
        () => survivePeer(bench, (bench) => runMeasure(bench, measure)),
      );
      sets.get(measure)?.push(value);
      if (isPeerBroken || servers.length < launchers.length) peerBroke.add(measure);
    }
  }
  return measures.flatMap((measure) => {
    const measured = sets.get(measure) ?? [];
    const cpu = cpuSum(measured.map((one) => one.cpu));
    return measure.figures.map((figure, index) => {
      const values = joined(measured.flatMap((one) => one.values[index] ?? []));
      return { figure, values: peerBroke.has(measure) ? withoutPeer(values) : values, cpu };
    });
  });
}

/** Rounds are compared one by one: a cache without a value for each has none. */
function withoutPeer(values: Values): Values {
  return new Map([...values].filter(([name]) => name !== PEER));
}

async function launchersOf(
  workplace: Workplace,
  { executable, beside, pairOnly }: BenchOptions,
  { origin, folder }: { readonly origin: Origin; readonly folder: string },
): Promise<readonly Launcher[]> {
  const peer = Deno.env.get("BENCH_PEER");
  const further = await Promise.all(beside.map(besideParts));
  return [
    larderLauncher(workplace, { ...origin, executable }),
    ...further.map((parts) => larderLauncher(workplace, { ...origin, ...parts })),
    ...(pairOnly ? [] : [directoryLauncher(workplace, folder)]),
    proxyLauncher(workplace, origin.upstreamUrl),
    ...(peer === undefined ? [] : [peerLauncher(workplace, peer, origin)]),
  ];
}

/** A slash tells an executable from a Deno version. */
async function besideParts(
  what: string,
): Promise<Pick<LarderParts, "name" | "executable" | "deno">> {
  const name = `larder, ${what.slice(what.lastIndexOf("/") + 1)}`;
  if (what.includes("/")) return { name, executable: what };
  const { success, stdout } = await new Deno.Command(`${REPOSITORY}scripts/deno`, {
    args: ["eval", "console.log(Deno.execPath())"],
    env: { USE_DENO: what },
    stderr: "inherit",
  }).output();
  if (!success) throw new Error(`Cannot run Deno ${what}`);
  return { name, executable: undefined, deno: new TextDecoder().decode(stdout).trim() };
}

function variantsOf(
  workplace: Workplace,
  { executable }: BenchOptions,
  origin: Origin,
): Bench["variants"] {
  const variant = (flags: Record<string, string>, environment: Record<string, string> = {}) =>
    larderLauncher(workplace, { ...origin, executable, flags, environment });
  return {
    plain: variant({}),
    metrics: variant({ "prometheus-enabled": "true" }),
    behindNginx: variant({
      "server-trusted-proxies": "127.0.0.1",
      "server-accel-redirect": "/larder-nars/",
    }),
    traces: variant({ "prometheus-enabled": "true", "otel-enabled": "true" }, {
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
    }),
  };
}
