// Runs one to three real larders with a size limit, random faults and arbitrary clients, and checks
// every answer byte for byte.
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/failure.ts";
import { clock } from "../src/runtime/current.ts";
import { runLarder } from "../tests/support/run_larder.ts";
import { servedNar, servedNarinfo } from "../tests/support/served_nar.ts";
import type { StoreObject } from "../tests/support/store_object.ts";
import { Client } from "./soak/client.ts";
import { Cluster } from "./soak/cluster.ts";
import { harm } from "./soak/harm.ts";
import { mib, Monitor, report, Tally } from "./soak/report.ts";
import { diceOf, World } from "./soak/world.ts";
import { optionsOrExit } from "./options_or_exit.ts";

/** A fifth of all files, so that evictions never stop. */
const LIMIT_BYTES = 24 << 20;
const MINUTE_MS = 60_000;
const LOOK_MS = 1_000;
const LOOKS_PER_LINE = MINUTE_MS / LOOK_MS;
const RETRY_MS = 100;
/** Time to close idle upstream connections and to collect buffers. */
const QUIET_MS = 2_000;
/** A killed member is silent for 30 s at most before the next search, 10 s later, removes it. */
const DEAD_MAX_MS = 45_000;
/** Time limit after the faults, for everything to be available again. */
const RECOVERY_MAX_MS = 60_000;

const USAGE = `Larders among failing upstreams and unruly clients; every narinfo and NAR is checked.

  --minutes N  how long, parts of one too (default 10)
  --clients N  how many at once (default 200)
  --seed N     what happens (default: another one each time, printed)
  --members N  one larder (default), or two or three on one storage
  --harm       from time to time, kill, restart or pause a larder

Two and more need redis-server. They use PostgreSQL where that is installed, else SQLite. NAR files
are in S3 where scripts/versitygw has built a server, else in a folder. --harm also separates those
larders, stops and freezes Redis and PostgreSQL, and lets S3 refuse, wait and cut.

Exit status 1: a wrong byte, a 5xx response to a narinfo or NAR request, or no recovery in the end.
Status 1, too: growing memory, a disk beyond its limit, or a file left open.
`;

Deno.exit(await soak(optionsOrExit(readOptions, USAGE)) ? 0 : 1);

/** Throws an Error that explains invalid arguments. */
function readOptions(words: readonly string[]) {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: "string", default: "10" },
      clients: { type: "string", default: "200" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
      members: { type: "string", default: "1" },
      harm: { type: "boolean", default: false },
    },
  });
  const members = Number(values.members);
  if (![1, 2, 3].includes(members)) {
    throw new Error(`--members is "${values.members}": expected 1, 2 or 3`);
  }
  return {
    members,
    minutes: positive("minutes", values.minutes),
    clients: Math.ceil(positive("clients", values.clients)),
    seed: positive("seed", values.seed),
    harm: values.harm,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} is "${text}": expected a number above 0`);
  return value;
}

/** Resolves to true if there were no problems. */
async function soak(given: ReturnType<typeof readOptions>): Promise<boolean> {
  const { minutes, clients, seed, members } = given;
  const harms = given.harm ? " --harm" : "";
  console.error(
    `soak: ${clients} clients, ${minutes} min, --members ${members} --seed ${seed}${harms}`,
  );
  const diceFor = (name: string) => diceOf(seed, name);
  await using world = await World.open(diceFor("world"));
  await using cluster = await Cluster.start(world, { count: members, limitBytes: LIMIT_BYTES });
  const [tally, monitor] = [new Tally(), new Monitor(LIMIT_BYTES)];
  const endsAt = performance.now() + minutes * MINUTE_MS;
  const isOver = () => performance.now() > endsAt;
  let harmed: ReadonlyMap<string, number> = new Map();
  {
    using _watch = watch(cluster, monitor, tally);
    world.fail(diceFor("upstreams"));
    const harming = given.harm ? harm(cluster, diceFor("harm"), isOver) : harmed;
    await Promise.all(Array.from({ length: clients }, async (_, at) => {
      const dice = diceFor(`client ${at}`);
      const port = () => dice.pick(cluster.members).larder?.port;
      const client = new Client({ dice, tally, world, port });
      while (!isOver()) await client.act();
    }));
    harmed = await harming;
  }
  await world.mend();
  const endProblems = await problemsAtTheEnd(cluster, world, monitor);
  const findings = { tally, monitor, limitBytes: LIMIT_BYTES, harms: harmed, endProblems };
  const { text, wrongs } = report(findings);
  console.log(text);
  for (const wrong of wrongs) console.log(`WRONG: ${wrong}`);
  return wrongs.length === 0;
}

/** Samples every second. Prints each new wrong answer, and a line every minute. */
function watch(cluster: Cluster, monitor: Monitor, tally: Tally): Disposable {
  let count = 0;
  let printed = 0;
  const look = () => {
    for (const larder of cluster.larders) monitor.look(larder);
    for (const wrong of tally.wrongs.slice(printed)) console.error(`WRONG: ${wrong}`);
    printed = tally.wrongs.length;
    const sample = monitor.samples.at(-1);
    if (sample === undefined || count++ % LOOKS_PER_LINE !== 0) return;
    const { seconds, residentBytes, handles, diskBytes } = sample;
    const seen = `${mib(residentBytes)} in memory, ${handles} handles, ${mib(diskBytes)} on disk`;
    console.error(`${seconds.toFixed(0).padStart(5)} s: ${seen}, ${tally.wrongCount} wrong`);
  };
  look();
  const timer = setInterval(look, LOOK_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Checks the end with healthy upstreams: all objects arrive, and files, rows and handles agree. */
async function problemsAtTheEnd(
  cluster: Cluster,
  world: World,
  monitor: Monitor,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const ports = cluster.members.map(({ port }) => port);
  const untilMs = performance.now() + RECOVERY_MAX_MS;
  const has = (object: StoreObject) => world.upstreams.some((upstream) => upstream.has(object));
  for (const [at, object] of world.objects.map(({ object }) => object).filter(has).entries()) {
    const port = ports[at % ports.length] ?? 0;
    while (await lackOf(port, object) !== "") {
      await clock.pause(RETRY_MS);
      if (performance.now() < untilMs) continue;
      problems.push(`${object.baseName}, with all upstreams right: ${await lackOf(port, object)}`);
      break;
    }
  }
  await clock.pause(QUIET_MS);
  for (const larder of cluster.larders) monitor.look(larder);
  const left = await leftOver(`${cluster.storage}/tmp`, cluster.members.length);
  if (left.length > 0) problems.push(`left over: ${JSON.stringify(left)}`);
  for (const member of cluster.members) {
    const code = await cluster.end(member, "SIGTERM");
    if (code !== 0) problems.push(`a larder ended with status ${code}`);
  }
  const { status, out, err } = await runLarder(["fsck", "--verify-content", ...cluster.places]);
  if (status !== 0) problems.push(`fsck: ${out}${err}`);
  return problems;
}

/** Names that dead members or downloads left in the spool after `DEAD_MAX_MS`. */
async function leftOver(spool: string, members: number): Promise<readonly unknown[]> {
  const untilMs = performance.now() + DEAD_MAX_MS;
  for (;;) {
    const folders = [...Deno.readDirSync(spool)].map(({ name }) => name);
    const left = folders.length > members
      ? folders
      : folders.flatMap((name) => [...Deno.readDirSync(`${spool}/${name}`)]);
    if (left.length === 0 || performance.now() > untilMs) return left;
    await clock.pause(RETRY_MS);
  }
}

/** The problem with the answers for an object; "" if none. */
async function lackOf(port: number, { storePathHash }: StoreObject): Promise<string> {
  try {
    const { status } = await servedNar(port, await servedNarinfo(port, storePathHash));
    return status === 200 ? "" : `the NAR is ${status}`;
  } catch (error) {
    const message = messageOf(error);
    // A narinfo fetched during its NAR's download may forward a wrong size.
    return message.startsWith("FileSize") ? "" : message;
  }
}
