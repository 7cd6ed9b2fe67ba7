import { checkNarinfos, checkNars, checkStored, download, type Load, runLoad } from "./load.ts";
import { absentPaths, type Corpus, type CorpusSet, type RealCompression } from "./corpus.ts";
import { MAIN_THREAD, type Server, type Workplace } from "./servers.ts";

/** One row of the table. */
export interface Figure {
  readonly name: string;
  readonly unit: "requests/s" | "MB/s" | "µs" | "ms" | "s" | "MB";
  /** For larder: a least ratio to the twin, a most beyond the twin, or a most. */
  readonly target?: { readonly kind: "ratio" | "beyond" | "most"; readonly limit: number };
}

/** The environment of a measure. */
export interface Bench {
  readonly workplace: Workplace;
  readonly corpus: Corpus;
  readonly rounds: number;
  /** Time of wrk's load on a server in one round. */
  readonly seconds: number;
  readonly warmUp: "once" | number;
}

/** Measures a server once; returns a value for each figure. Rounds are numbered from 0. */
export type Round = (round: number) => Promise<readonly number[]>;

/** A measurement of one or more figures. */
export interface Measure {
  readonly figures: readonly Figure[];
  /** Makes the files, checks the server's answers, and warms it up. */
  prepare(bench: Bench, server: Server): Promise<Round>;
}

const MB = 1_000_000;
const NARINFOS = { count: 3_000, seed: 1_000 };
const SMALL_NARS = { count: 200, seed: 2 };
const SMALL_BYTES = 50 * 1_024;
const BIG_BYTES = 256 << 20;
const REAL_BYTES = 64 * MB;
const PROCESS_NAR_BYTES = 1 << 20;
const COLD_CONNECTIONS = 16;

/** The bench reads one in so many answers of a cold set; wrk checks the status of all. */
const CHECKED_STEP = 10;

/** larder starts its Workers in one order: fetch, then the first to verify. */
const VERIFY_THREAD = "worker-2";

/** All measures, in running order. */
export const MEASURES: readonly Measure[] = [
  // A Nix client has many connections; 400 are more than Deno serves in a turn of its event loop.
  underLoad("narinfo hits, 3,000 different", { connections: 1, atLeast: 0.85 }, narinfoHits),
  underLoad("narinfo hits, 3,000 different", { connections: 16, atLeast: 0.8 }, narinfoHits),
  underLoad("narinfo hits, 3,000 different", { connections: 400, atLeast: 0.8 }, narinfoHits),
  underLoad("known misses, 3,000 different", { connections: 16, atLeast: 0.85 }, knownMisses),
  underLoad("NAR hits of 50 KiB, 200 different", { connections: 16, atLeast: 0.5 }, smallNars),
  bigNarHits(1),
  bigNarHits(8),
  coldNar(),
  coldNarinfos(),
  realNar("xz"),
  realNar("zstd"),
  newProcess(),
  {
    figures: [
      { name: "memory after all of the above", unit: "MB", target: { kind: "most", limit: 180 } },
      { name: "peak memory", unit: "MB", target: { kind: "most", limit: 180 } },
    ],
    async prepare(_bench, server) {
      return async () => [server.memory().resident / MB, server.memory().peak / MB];
    },
  },
];

/** The processor time of `name`'s server for one unit of its work. */
function cpuFigure(name: string, unit: "µs" | "ms"): Figure {
  return { name: `${name}: CPU each`, unit };
}

/** Requests for the same paths again and again. */
function underLoad(
  what: string,
  { connections, atLeast }: { readonly connections: number; readonly atLeast: number },
  loadOf: (bench: Bench, server: Server) => Promise<Pick<Load, "paths" | "status">>,
): Measure {
  const name = `${what}, ${connections} connection${connections === 1 ? "" : "s"}`;
  return {
    figures: [
      { name, unit: "requests/s", target: { kind: "ratio", limit: atLeast } },
      cpuFigure(name, "µs"),
      // Of few connections it tells nothing but the machine's other work.
      ...connections > 64 ? [{ name: `${name}: p99`, unit: "ms" } as const] : [],
    ],
    async prepare(bench, server) {
      const load = { ...await loadOf(bench, server), connections };
      await runLoad(bench.workplace, server, { ...load, seconds: bench.warmUp });
      return async () => {
        const measured = { ...load, seconds: bench.seconds };
        const { perSecond, cpuUs, lateMs } = await runLoad(bench.workplace, server, measured);
        return [perSecond, cpuUs, lateMs];
      };
    },
  };
}

async function narinfoHits({ corpus }: Bench, server: Server) {
  const objects = corpus.putNarinfos(NARINFOS);
  const paths = objects.map(({ narinfoPath }) => narinfoPath);
  await checkNarinfos(server, objects, corpus.publicKey);
  await checkStored(server, paths);
  return { paths };
}

async function knownMisses({ workplace }: Bench, server: Server) {
  const paths = absentPaths(NARINFOS);
  await runLoad(workplace, server, { paths, connections: 16, seconds: "once", status: 404 });
  return { paths, status: 404 } as const;
}

async function smallNars(bench: Bench, server: Server) {
  return { paths: await storedNars(bench, server, SMALL_NARS, SMALL_BYTES) };
}

function bigNarHits(clients: number): Measure {
  const name = `NAR hits of 256 MiB, ${clients} client${clients === 1 ? "" : "s"}`;
  return {
    figures: [
      { name, unit: "MB/s", target: { kind: "ratio", limit: 0.75 } },
      cpuFigure(name, "ms"),
    ],
    async prepare(bench, server) {
      // The check has read every byte, so the server is warm.
      const [path] = await storedNars(bench, server, { count: 1, seed: 3 }, BIG_BYTES);
      return async () => {
        const before = server.cpuSeconds();
        const transfers = await Promise.all(Array.from({ length: clients }, () => (
          download(bench.workplace, server.url + path)
        )));
        const bytes = transfers.reduce((sum, transfer) => sum + transfer.bytes, 0);
        const seconds = Math.max(...transfers.map((transfer) => transfer.seconds));
        return [bytes / MB / seconds, 1_000 * (server.cpuSeconds() - before) / clients];
      };
    },
  };
}

/** Misses of big NARs; a new one in every round. */
function coldNar(): Measure {
  const name = "cold NAR of 256 MiB";
  return {
    figures: [
      { name, unit: "MB/s", target: { kind: "ratio", limit: 0.6 } },
      { name: `${name}, time to first byte`, unit: "ms", target: { kind: "beyond", limit: 3 } },
      cpuFigure(name, "ms"),
    ],
    async prepare({ workplace, corpus, rounds }, server) {
      const objects = corpus.putNars({ count: rounds, seed: 20 }, BIG_BYTES);
      const warmUp = corpus.putNars({ count: 1, seed: 21 }, BIG_BYTES / 8);
      const nars = await checkNarinfos(server, [...objects, ...warmUp], corpus.publicKey);
      // Half as much again for each of two servers: the load and the logs take some of it.
      await touchMemory(workplace, 3 * rounds * BIG_BYTES);
      const round: Round = async (round) => {
        const { narPath = "" } = nars[round] ?? {};
        const before = server.cpuSeconds();
        const transfer = await download(workplace, server.url + narPath);
        await checkStored(server, [narPath]);
        const cpuMs = 1_000 * (server.cpuSeconds() - before);
        // One server's writes would slow the next one down.
        await workplace.run("sync", "-f", workplace.folder);
        return [transfer.bytes / MB / transfer.seconds, transfer.firstByteMs, cpuMs];
      };
      await round(rounds);
      return round;
    },
  };
}

/** Misses: narinfos from the upstream, new ones in every round. */
function coldNarinfos(): Measure {
  const name = `cold narinfos, 3,000 different, ${COLD_CONNECTIONS} connections`;
  return {
    figures: [
      { name, unit: "requests/s", target: { kind: "ratio", limit: 0.5 } },
      cpuFigure(name, "µs"),
      {
        name: `${name}: CPU each of the thread that answers`,
        unit: "µs",
        target: { kind: "most", limit: 250 },
      },
    ],
    async prepare({ workplace, corpus, rounds }, server) {
      const round: Round = async (round) => {
        const objects = corpus.putNarinfos({ count: NARINFOS.count, seed: round });
        const paths = objects.map(({ narinfoPath }) => narinfoPath);
        const before = server.cpuSeconds(MAIN_THREAD);
        const load = { paths, connections: COLD_CONNECTIONS, seconds: "once" } as const;
        const { perSecond, cpuUs } = await runLoad(workplace, server, load);
        const mainUs = 1e6 * (server.cpuSeconds(MAIN_THREAD) - before) / paths.length;
        const some = objects.filter((_, at) => at % CHECKED_STEP === 0);
        await checkNarinfos(server, some, corpus.publicKey);
        return [perSecond, cpuUs, mainUs];
      };
      // The set behind the last round's is for warming up.
      await round(rounds);
      return round;
    },
  };
}

/** Misses of NARs as real upstreams compress them: larder has to decompress them to verify them. */
function realNar(compression: RealCompression): Measure {
  const name = `cold NAR of 64 MB of programs, ${compression}`;
  return {
    figures: [
      { name: `${name}: until stored`, unit: "s" },
      { name: `${name}: NAR bytes for a second of the verify thread`, unit: "MB/s" },
    ],
    async prepare({ workplace, corpus, rounds }, server) {
      const objects = corpus.putRealNars({ count: rounds, seed: 30 }, REAL_BYTES, compression);
      const nars = await checkNarinfos(server, objects, corpus.publicKey);
      return async (round) => {
        const { narPath = "", narSize = NaN } = nars[round] ?? {};
        const before = server.cpuSeconds(VERIFY_THREAD);
        const startedAtMs = performance.now();
        await download(workplace, server.url + narPath);
        await checkStored(server, [narPath]);
        const tookS = (performance.now() - startedAtMs) / 1_000;
        return [tookS, narSize / MB / (server.cpuSeconds(VERIFY_THREAD) - before)];
      };
    },
  };
}

/** A start with a filled folder, and the first NARs of that process, which are misses. */
function newProcess(): Measure {
  const first = "first NAR after a start, to its first byte";
  return {
    figures: [
      { name: "start", unit: "s", target: { kind: "most", limit: 0.5 } },
      { name: "memory at the first answer", unit: "MB", target: { kind: "most", limit: 85 } },
      { name: first, unit: "ms" },
      { name: `${first}: more than the second`, unit: "ms", target: { kind: "most", limit: 5 } },
    ],
    async prepare({ workplace, corpus, rounds }, { launcher }) {
      const folder = workplace.makeFolder(launcher.name);
      await (await launcher.launch(folder))[Symbol.asyncDispose]();
      const objects = corpus.putNars({ count: 2 * rounds, seed: 40 }, PROCESS_NAR_BYTES);
      return async (round) => {
        const startedAtMs = performance.now();
        await using server = await launcher.launch(folder);
        const seconds = (performance.now() - startedAtMs) / 1_000;
        const megabytes = server.memory().resident / MB;
        const pair = objects.slice(2 * round, 2 * round + 2);
        const times: number[] = [];
        for (const { narPath } of await checkNarinfos(server, pair, corpus.publicKey)) {
          times.push((await download(workplace, server.url + narPath)).firstByteMs);
        }
        const [firstMs = NaN, secondMs = NaN] = times;
        return [seconds, megabytes, firstMs, firstMs - secondMs];
      };
    },
  };
}

/** Paths of NARs that the server has stored, and has answered rightly. */
export async function storedNars(
  { corpus }: Pick<Bench, "corpus">,
  server: Server,
  set: CorpusSet,
  bytes: number,
): Promise<readonly string[]> {
  const found = await checkNarinfos(server, corpus.putNars(set, bytes), corpus.publicKey);
  const paths = found.map(({ narPath }) => narPath);
  await checkNars(server, found);
  await checkStored(server, paths);
  return paths;
}

const PART_BYTES = 2 ** 28;

/** Writes to each page of as much memory as the argument says, and ends. */
const TOUCH = `
  const parts = [];
  for (let left = Number(Deno.args[0]); left > 0; left -= ${PART_BYTES}) {
    const part = new Uint8Array(${PART_BYTES});
    for (let at = 0; at < part.length; at += 4096) part[at] = 1;
    parts.push(part);
  }
`;

/**
 * Touches free memory, which new files then get. A virtual machine's host provides a page at its
 * first write, in the time of the process that writes. Without this, 256 MiB cost a server some 400
 * ms more if no process had that memory before. Resolves at once where the memory is short.
 */
async function touchMemory(workplace: Workplace, bytes: number): Promise<void> {
  if (Deno.systemMemoryInfo().available < 2 * bytes) return;
  await workplace.run(Deno.execPath(), "eval", TOUCH, String(bytes));
}
