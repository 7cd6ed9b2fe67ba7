// Runs one to three real larders with a size limit, random faults and arbitrary clients, and checks
// every answer byte for byte. See scripts/soak/options.ts for the options.
import { messageOf } from "../src/base/failure.ts";
import { runLarder } from "../tests/support/run_larder.ts";
import { servedNar, servedNarinfo } from "../tests/support/served_nar.ts";
import type { StoreObject } from "../tests/support/store_object.ts";
import { Attacker } from "./soak/attacker.ts";
import { Client } from "./soak/client.ts";
import { Cluster } from "./soak/cluster.ts";
import { Dice } from "./soak/dice.ts";
import { harm } from "./soak/harm.ts";
import { Monitor } from "./soak/monitor.ts";
import { readOptions, type SoakOptions, USAGE } from "./soak/options.ts";
import { mib, report } from "./soak/report.ts";
import { Tally } from "./soak/tally.ts";
import { World } from "./soak/world.ts";
import { optionsOrExit } from "./options_or_exit.ts";

/** A fifth of all files, so that evictions never stop. */
const LIMIT_BYTES = 24 << 20;
const ATTACKERS = 10;
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

const options = optionsOrExit(readOptions, USAGE);
Deno.exit(await soak(options) ? 0 : 1);

/** Resolves to true if there were no problems. */
async function soak(given: SoakOptions): Promise<boolean> {
  const { minutes, clients, seed, members } = given;
  const harms = given.harm ? " --harm" : "";
  console.error(
    `soak: ${clients} clients, ${minutes} min, --members ${members} --seed ${seed}${harms}`,
  );
  const diceFor = (name: string) => new Dice(seed, name);
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
    const portFor = (dice: Dice) => () => dice.pick(cluster.members).larder?.port;
    const actors = [
      ...Array.from({ length: clients }, (_, at) => {
        const dice = diceFor(`client ${at}`);
        return new Client({ dice, tally, world, port: portFor(dice) });
      }),
      ...Array.from({ length: ATTACKERS }, (_, at) => {
        const dice = diceFor(`attacker ${at}`);
        return new Attacker({ dice, tally, world, port: portFor(dice) });
      }),
    ];
    await Promise.all(actors.map(async (actor) => {
      while (!isOver()) await actor.act();
    }));
    harmed = await harming;
  }
  await world.mend();
  const endProblems = await problemsAtTheEnd(cluster, world, monitor);
  const { text, wrongs } = report({
    tally,
    monitor,
    limitBytes: LIMIT_BYTES,
    harms: harmed,
    endProblems,
  });
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
  for (const [at, object] of world.objects.filter(has).entries()) {
    const port = ports[at % ports.length] ?? 0;
    while (await lackOf(port, object) !== "") {
      await pause(RETRY_MS);
      if (performance.now() < untilMs) continue;
      problems.push(`${object.baseName}, with all upstreams right: ${await lackOf(port, object)}`);
      break;
    }
  }
  await pause(QUIET_MS);
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
    await pause(RETRY_MS);
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
