// Measures hits of one, two and three larders on one storage, and prints a table of Markdown.
// `--seconds N`: the length of each of three rounds (default 2).
import { parseArgs } from "node:util";
import { PostgresServer } from "../tests/support/postgres.ts";
import { postgresMissing } from "../tests/support/postgres_missing.ts";
import { programsMissing } from "../tests/support/program.ts";
import { redisMissing, RedisServer } from "../tests/support/redis_server.ts";
import { Corpus } from "./bench/corpus.ts";
import { checkNarinfos, checkStored, runLoad } from "./bench/load.ts";
import { storedNars } from "./bench/measures.ts";
import { type Server, Workplace } from "./bench/servers.ts";
import { median } from "./median.ts";

const ROUNDS = 3;
const CONNECTIONS = 16;

const { values } = parseArgs({ options: { seconds: { type: "string", default: "2" } } });
await using workplace = new Workplace();
const missing = [postgresMissing, redisMissing, programsMissing("nginx", "wrk", "taskset")]
  .filter((reason) => reason !== "");
const postgres = PostgresServer.start();
if (missing.length > 0 || postgres === undefined) {
  console.error(missing.join("\n"));
  Deno.exit(1);
}
await using redis = await RedisServer.open();
const corpus = new Corpus(workplace.makeFolder("corpus"));
const files = workplace.nginx("upstream", () => ({ kind: "directory", root: corpus.folder }));
await using upstream = await files.launch();

console.log(`${navigator.hardwareConcurrency} cores, shared by load and servers; each larder on one

| Hits of all | narinfos | CPU each | NARs of 50 KiB | CPU each |
| --- | ---: | ---: | ---: | ---: |`);
for (const [what, count] of [["SQLite", 1], ["shared", 1], ["shared", 2], ["shared", 3]] as const) {
  const flags = what === "SQLite" ? undefined : {
    "cache-database-url": await postgres.createMigrated(),
    "cache-redis-addrs": redis.address,
    "cache-lock-redis-key-prefix": `${count}:`,
  };
  const name = `${count} larder${count === 1 ? "" : "s"}`;
  const servers = what === "SQLite" ? "SQLite" : "PostgreSQL and Redis";
  console.log(`| ${name}, ${servers} | ${await hitsOf(count, flags)} |`);
}
// The handlers of signals keep the process alive, so the scope of this file does not end.
await workplace[Symbol.asyncDispose]();
await redis.kill();
Deno.exit(0);

/** Hits of all larders of one storage at a time, each on a core of its own while there are some. */
async function hitsOf(count: number, flags: Readonly<Record<string, string>> = {}) {
  const origin = { upstreamUrl: upstream.url, publicKey: corpus.publicKey.text };
  const folder = workplace.makeFolder("larders");
  await using running = new AsyncDisposableStack();
  const larders: Server[] = [];
  const objects = corpus.putNarinfos({ count: 3_000, seed: 1 });
  const narinfos = objects.map(({ narinfoPath }) => narinfoPath);
  let nars: readonly string[] = [];
  for (let place = 0; place < count; place++) {
    const core = place % navigator.hardwareConcurrency;
    const larder = running.use(await workplace.larder({ ...origin, flags, core }).launch(folder));
    await checkNarinfos(larder, objects, corpus.publicKey);
    await checkStored(larder, narinfos);
    nars = await storedNars({ corpus }, larder, { count: 200, seed: 2 }, 50 * 1_024);
    larders.push(larder);
  }
  const cells: string[] = [];
  for (const paths of [narinfos, nars]) {
    const load = async (seconds: number) => {
      const one = { paths, connections: CONNECTIONS, seconds };
      const all = await Promise.all(larders.map((larder) => runLoad(workplace, larder, one)));
      const perSecond = all.reduce((sum, { perSecond }) => sum + perSecond, 0);
      const cpuUs = all.reduce((sum, one) => sum + one.perSecond * one.cpuUs, 0) / perSecond;
      return { perSecond, cpuUs };
    };
    await load(1);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await load(Number(values.seconds)));
    const rate = Math.round(median(rounds.map(({ perSecond }) => perSecond)));
    const cpuUs = Math.round(median(rounds.map((one) => one.cpuUs)));
    cells.push(`${rate.toLocaleString("en")} /s`, `${cpuUs} µs`);
  }
  return cells.join(" | ");
}
