// Runs a real larder with a size limit, random upstream faults and arbitrary clients, and checks
// every answer byte for byte. See scripts/soak/options.ts for the options.
import { messageOf } from "../src/base/failure.ts";
import { runLarder } from "../tests/support/run_larder.ts";
import { servedNar, servedNarinfo } from "../tests/support/served_nar.ts";
import type { StoreObject } from "../tests/support/store_object.ts";
import { Attacker } from "./soak/attacker.ts";
import { Client } from "./soak/client.ts";
import { Dice } from "./soak/dice.ts";
import { Monitor } from "./soak/monitor.ts";
import { readOptions, type SoakOptions, USAGE } from "./soak/options.ts";
import { mib, report } from "./soak/report.ts";
import { Server } from "./soak/server.ts";
import { Tally } from "./soak/tally.ts";
import { World } from "./soak/world.ts";
import { optionsOrExit } from "./options_or_exit.ts";

/** A fifth of all files, so that evictions never stop. */
const LIMIT_BYTES = 24 << 20;
const ATTACKERS = 10;
const KILL_AFTER_MS = 20_000;
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
async function soak({ minutes, clients, seed, kills }: SoakOptions): Promise<boolean> {
  console.error(
    `soak: ${clients} clients, ${minutes} min, --seed ${seed}${kills ? " --kills" : ""}`,
  );
  const diceFor = (name: string) => new Dice(seed, name);
  await using world = await World.open(diceFor("world"));
  await using server = new Server(world, LIMIT_BYTES);
  await server.start();
  const [tally, monitor] = [new Tally(), new Monitor(LIMIT_BYTES)];
  const endsAt = performance.now() + minutes * MINUTE_MS;
  const isOver = () => performance.now() > endsAt;
  let killed = 0;
  {
    using _watch = watch(server, monitor, tally);
    world.fail(diceFor("upstreams"));
    const killing = kills ? killAgainAndAgain(server, diceFor("kills"), isOver) : 0;
    const port = () => server.larder?.port;
    const actors = [
      ...Array.from({ length: clients }, (_, at) => (
        new Client({ dice: diceFor(`client ${at}`), tally, world, port })
      )),
      ...Array.from({ length: ATTACKERS }, (_, at) => (
        new Attacker({ dice: diceFor(`attacker ${at}`), tally, world, port })
      )),
    ];
    await Promise.all(actors.map(async (actor) => {
      while (!isOver()) await actor.act();
    }));
    killed = await killing;
  }
  await world.mend();
  const endProblems = await problemsAtTheEnd(server, world, monitor);
  const { text, wrongs } = report({
    tally,
    monitor,
    limitBytes: LIMIT_BYTES,
    kills: killed,
    endProblems,
  });
  console.log(text);
  for (const wrong of wrongs) console.log(`WRONG: ${wrong}`);
  return wrongs.length === 0;
}

/** Samples every second. Prints each new wrong answer, and a line every minute. */
function watch(server: Server, monitor: Monitor, tally: Tally): Disposable {
  let count = 0;
  let printed = 0;
  const look = () => {
    if (server.larder !== undefined) monitor.look(server.larder);
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

/** Resolves to the number of kills. */
async function killAgainAndAgain(
  server: Server,
  dice: Dice,
  isOver: () => boolean,
): Promise<number> {
  for (let count = 0;; count++) {
    const untilMs = performance.now() + dice.below(2 * KILL_AFTER_MS);
    while (performance.now() < untilMs && !isOver()) await pause(LOOK_MS);
    if (isOver()) return count;
    await server.kill();
    await server.start();
  }
}

/** Checks the end with healthy upstreams: all objects arrive, and files, rows and handles agree. */
async function problemsAtTheEnd(
  server: Server,
  world: World,
  monitor: Monitor,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const port = server.larder?.port ?? 0;
  const untilMs = performance.now() + RECOVERY_MAX_MS;
  const has = (object: StoreObject) => world.upstreams.some((upstream) => upstream.has(object));
  for (const object of world.objects.filter(has)) {
    while (await lackOf(port, object) !== "") {
      await pause(RETRY_MS);
      if (performance.now() < untilMs) continue;
      problems.push(`${object.baseName}, with all upstreams right: ${await lackOf(port, object)}`);
      break;
    }
  }
  await pause(QUIET_MS);
  if (server.larder !== undefined) monitor.look(server.larder);
  const left = await leftOver(`${server.storage}/tmp`);
  if (left.length > 0) problems.push(`left over: ${JSON.stringify(left)}`);
  const { code } = await server.stop();
  if (code !== 0) problems.push(`it ended with status ${code}`);
  const words = ["fsck", "--verify-content", "--cache-storage-local", server.storage];
  const { status, out, err } = await runLarder(words);
  if (status !== 0) problems.push(`fsck: ${out}${err}`);
  return problems;
}

/** Names that dead members or downloads left in the spool after `DEAD_MAX_MS`. */
async function leftOver(spool: string): Promise<readonly unknown[]> {
  const untilMs = performance.now() + DEAD_MAX_MS;
  for (;;) {
    const members = [...Deno.readDirSync(spool)].map(({ name }) => name);
    const left = members.length > 1 ? members : [...Deno.readDirSync(`${spool}/${members[0]}`)];
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
