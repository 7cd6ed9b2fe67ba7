// Measures hits of one, two and three larders on one storage, and the cost of their shared servers.
// Prints tables of Markdown. `--seconds N`: the length of each of three rounds (default 2).
import { parseArgs } from "node:util";
import { PostgresServer } from "../tests/support/postgres.ts";
import { postgresMissing } from "../tests/support/postgres_missing.ts";
import { programsMissing } from "../tests/support/program.ts";
import { redisMissing, RedisServer } from "../tests/support/redis_server.ts";
import { Corpus } from "./bench/corpus.ts";
import { directoryLauncher } from "./bench/launchers.ts";
import { type Group, launchGroup } from "./bench/replicas/launch_group.ts";
import { type CallCost, leaseCost, metadataCosts } from "./bench/replicas/measure_calls.ts";
import { type HitFigures, measureHits } from "./bench/replicas/measure_hits.ts";
import { Workplace } from "./bench/workplace.ts";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "2" } } });
const seconds = Number(values.seconds);

// Debian has nginx there; PATH of a user who is not root lacks it.
Deno.env.set("PATH", `${Deno.env.get("PATH")}:/usr/sbin`);
const missing = [
  postgresMissing,
  redisMissing,
  programsMissing("nginx", "wrk", "taskset"),
]
  .filter((reason) => reason !== "");
const postgres = PostgresServer.start();
if (missing.length > 0 || postgres === undefined) {
  console.error(missing.join("\n"));
  Deno.exit(1);
}

// Without a handler the servers would outlive this.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => Deno.exit(1));
}

await using redis = await RedisServer.open();
await using workplace = new Workplace();
const corpus = new Corpus(workplace.makeFolder("corpus"));
await using upstream = await directoryLauncher(workplace, corpus.folder)
  .launch(workplace.makeFolder("upstream"));

const groups: readonly Group[] = [
  { name: "1 larder, SQLite", count: 1 },
  ...await Promise.all([1, 2, 3].map(async (count) => ({
    name: `${count} ${count === 1 ? "larder" : "larders"}, PostgreSQL and Redis`,
    count,
    shared: { databaseUrl: await postgres.createMigrated(), redis: redis.address },
  }))),
];
const rows: string[] = [];
for (const group of groups) {
  const origin = { upstreamUrl: upstream.url, publicKey: corpus.publicKey.text };
  await using launched = await launchGroup(workplace, origin, group);
  const figures = await measureHits(workplace, corpus, { larders: launched.larders, seconds });
  rows.push(`| ${group.name} | ${shownHits(figures)} |`);
  console.error(rows.at(-1));
}
const sqlite = await metadataCosts({ kind: "sqlite", path: `${workplace.makeFolder("calls")}/db` });
const server = await metadataCosts({ kind: "postgres", url: await postgres.createMigrated() });
console.log(`
${navigator.hardwareConcurrency} cores, shared by load and servers; each larder on one of them

| Hits of all | narinfos | CPU each | NARs of 50 KiB | CPU each |
| --- | ---: | ---: | ---: | ---: |
${rows.join("\n")}

| Call, and the CPU of larder for it | SQLite | PostgreSQL | Redis |
| --- | ---: | ---: | ---: |
| row of a narinfo that is not in memory | ${shown(sqlite.row)} | ${shown(server.row)} | |
| reservation of space | ${shown(sqlite.reservation)} | ${shown(server.reservation)} | |
| lease, taken and given back | | | ${shown(await leaseCost(redis.address))} |
`);
// The handlers of signals keep the process alive, so the scope of this file does not end.
await workplace[Symbol.asyncDispose]();
await redis.kill();
Deno.exit(0);

function shownHits({ narinfos, nars }: HitFigures): string {
  return [narinfos, nars].map(({ perSecond, cpuUs }) => (
    `${Math.round(perSecond).toLocaleString("en")} /s | ${Math.round(cpuUs)} µs`
  )).join(" | ");
}

function shown({ us, cpuUs }: CallCost): string {
  return `${Math.round(us)} µs, ${Math.round(cpuUs)} µs`;
}
