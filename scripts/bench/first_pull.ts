import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import { NixClient } from "../../tests/support/nix_client.ts";
import { addObjects, type NixObject } from "../../tests/support/nix_store_objects.ts";
import { median } from "../median.ts";
import { type Launcher, PEER, type Workplace } from "./servers.ts";

/** Store paths of the closure. */
const PATHS_COUNT = 244;
/** NAR files in sum, after compression, and the range of their sizes before that. */
const FILES_BYTES = 45_000_000;
const SMALLEST_BYTES = 2_000;
const LARGEST_BYTES = 6_000_000;
/** Each refers to those at these parts of its own place: the closure is a dozen levels deep. */
const REFERENCE_PARTS = [1 / 4, 1 / 2, 2 / 3, 3 / 4, 5 / 6];
const ROUNDS = 3;

/** A pull of a new client, and its most seconds through a cold larder. */
const PULLS = [
  { how: "nix copy", latencyMs: 20, limitS: 1.9 },
  { how: "substitution, 16 at a time", latencyMs: 20, limitS: 1.1 },
  { how: "substitution, 16 at a time", latencyMs: 100, limitS: 2.2 },
] as const;

type Pull = typeof PULLS[number];

/** A closure as a binary cache that Nix itself made. */
interface Closure {
  readonly top: string;
  readonly publicKey: string;
  /** Bytes of the files by their paths on a server. */
  readonly files: ReadonlyMap<string, Bytes>;
}

/**
 * Measures how long a real Nix takes to bring a closure into an empty store: straight from an
 * upstream whose answers come late, through a new larder, and through one that has it all. The same
 * through the cache that BENCH_PEER names, if any. Returns Markdown.
 */
export async function measureFirstPull(workplace: Workplace, executable?: string): Promise<string> {
  const closure = await madeClosure(workplace.makeFolder("pulled"));
  let latencyMs = 0;
  await using upstream = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => undefined },
    async ({ url, method }) => {
      await clock.pause(latencyMs);
      const file = closure.files.get(new URL(url).pathname);
      if (file === undefined) return new Response("not found\n", { status: 404 });
      const headers = { "content-length": String(file.length) };
      return new Response(method === "HEAD" ? null : file, { headers });
    },
  );
  const upstreamUrl = `http://127.0.0.1:${upstream.addr.port}`;
  const origin = { upstreamUrl, publicKey: closure.publicKey };
  const program = Deno.env.get("BENCH_PEER");
  const caches = [
    workplace.larder({ ...origin, executable, flags: { "cache-negative-ttl": "60s" } }),
    ...program === undefined ? [] : [workplace.peer(program, origin)],
  ];
  const columns = caches.flatMap(({ name }) => [`${name}, cold`, "warm"]);
  const rows = [
    ["pull, latency of the upstream", "straight", ...columns, "target, cold", ""],
    ["---", "---:", ...columns.map(() => "---:"), "---:", "---"],
  ];
  for (const pull of PULLS) {
    latencyMs = pull.latencyMs;
    // Once: nothing depends on it, and it takes longest.
    const straightS = await seconds(pull, closure, upstreamUrl);
    const times = new Map(caches.map((cache) => [cache, { cold: [], warm: [] } as Times]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const [cache, time] of times) await pullThrough(cache, time, pull, closure);
    }
    const shown = [...times.values()].flatMap(({ cold, warm }) => [median(cold), median(warm)]);
    const [own = NaN] = shown;
    const verdict = own <= pull.limitS ? "reached" : "MISSED";
    const values = [straightS, ...shown].map((value) => value.toFixed(2));
    rows.push([`${pull.how}, ${latencyMs} ms`, ...values, `≤ ${pull.limitS}`, verdict]);
  }
  const about =
    `First pull: a real Nix brings ${PATHS_COUNT} paths into an empty store; medians of ` +
    `${ROUNDS} rounds, seconds; straight from the upstream once.`;
  return `${about}\n\n${rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("")}`;
}

/** Durations of pulls through new caches, and through the same ones again. */
interface Times {
  readonly cold: number[];
  readonly warm: number[];
}

async function pullThrough(cache: Launcher, times: Times, pull: Pull, closure: Closure) {
  try {
    await using server = await cache.launch();
    times.cold.push(await seconds(pull, closure, server.url));
    times.warm.push(await seconds(pull, closure, server.url));
  } catch (error) {
    // A failure of another cache is a result of its own.
    if (cache.name !== PEER) throw error;
    console.error(`${PEER}: ${error}`);
  }
}

/** Duration of a pull into an empty store. Throws unless the closure is complete. */
async function seconds({ how }: Pull, { top, publicKey }: Closure, url: string): Promise<number> {
  using client = new NixClient();
  const startedAtMs = performance.now();
  if (how === "nix copy") await client.copyFrom(top, { from: [url], trust: [publicKey] });
  else {
    const settings = [
      ...["--option", "substituters", url, "--option", "trusted-public-keys", publicKey],
      // Before Nix 2.13 substitutions are jobs like builds.
      ...["--option", "max-jobs", "16", "--option", "max-substitution-jobs", "16"],
    ];
    await client.run("nix-store", [...settings, "--realise", top]);
  }
  const tookMs = performance.now() - startedAtMs;
  const { length } = await client.closureOf(top);
  if (length !== PATHS_COUNT) throw new Error(`${url}: ${length} paths of ${PATHS_COUNT}`);
  return tookMs / 1_000;
}

/** Makes the closure, and forgets the store that it was made in. Takes half a minute. */
async function madeClosure(folder: string): Promise<Closure> {
  using maker = new NixClient();
  const key = await maker.makeKey("larder-bench-1");
  const { top } = await addObjects(maker, objects());
  await maker.copyTo(folder, top, { compression: "xz", level: 0, key });
  const files = new Map<string, Bytes>();
  for (const below of ["", "/nar"]) {
    for (const { name, isFile } of Deno.readDirSync(folder + below)) {
      if (isFile) files.set(`${below}/${name}`, Deno.readFileSync(`${folder}${below}/${name}`));
    }
  }
  return { top, publicKey: key.publicKey, files };
}

/** The last one leads to all others. */
function objects(): readonly NixObject[] {
  const names = Array.from({ length: PATHS_COUNT }, (_, at) => `pulled-${at}`);
  const sizes = names.map((_, at) => sizeAt(at));
  const scale = FILES_BYTES / sizes.reduce((sum, bytes) => sum + bytes, 0);
  const left = new Set(names.slice(0, -1));
  return names.map((name, at): NixObject => {
    const places = new Set(REFERENCE_PARTS.map((part) => Math.floor(at * part)));
    places.delete(at);
    const references = [...places].map((place) => names[place] ?? "");
    for (const reference of references) left.delete(reference);
    const isLast = at === PATHS_COUNT - 1;
    const content = { bytes: Math.round((sizes[at] ?? 0) * scale) };
    return { name, content, references: isLast ? [...references, ...left] : references };
  });
}

/** Most are small, few are large, in no order that has to do with the references. */
function sizeAt(at: number): number {
  const part = (at * 97 % PATHS_COUNT) / PATHS_COUNT;
  return SMALLEST_BYTES * (LARGEST_BYTES / SMALLEST_BYTES) ** (part ** 1.5);
}
