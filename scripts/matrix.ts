// Runs tests on each combination of back ends, with real servers, and prints a table of counts.
import { postgresMissing } from "../tests/support/postgres_missing.ts";
import { PostgresServer } from "../tests/support/postgres.ts";
import { redisMissing, RedisServer } from "../tests/support/redis_server.ts";
import { S3_UNAVAILABLE, S3Server } from "../tests/support/s3_server.ts";
import { SERVERS_VARIABLE, type SharedServers } from "../tests/support/shared_servers.ts";
import { type BackEnd, readOptions, USAGE } from "./matrix/options.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const { combinations, words } = optionsOrExit(readOptions, USAGE);
const MISSING = { postgres: postgresMissing, s3: S3_UNAVAILABLE, redis: redisMissing };
const needed = new Set(combinations.flat());
const missing = [...needed].map((one) => MISSING[one]).filter((reason) => reason !== "");
if (missing.length > 0) {
  console.error(missing.join("\n"));
  Deno.exit(1);
}

let endTests = () => {};
// Without a handler the servers would outlive this.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => {
    // They write to the servers.
    endTests();
    Deno.exit(1);
  });
}

await using redis = needed.has("redis") ? await RedisServer.open() : undefined;
const s3 = needed.has("s3") ? await S3Server.start() : undefined;
const postgres = needed.has("postgres") ? PostgresServer.start() : undefined;
const emptyDatabase = await postgres?.createMigrated();

const rows: string[] = [];
const sums = [0, 0, 0];
let hasFailed = false;
for (const combination of combinations) {
  console.log(`== ${nameOf(combination)}`);
  const startedAtMs = performance.now();
  const counts = await runTests(combination);
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  hasFailed ||= !/ 0 failed/.test(counts);
  for (const [at, count] of (counts.match(/\d+/g) ?? []).entries()) {
    sums[at] = (sums[at] ?? 0) + Number(count);
  }
  rows.push(`${nameOf(combination).padEnd(26)} ${counts}, ${seconds} s`);
}
console.log(`\n${rows.join("\n")}`);
console.log(`\n${sums[0]} passed, ${sums[1]} failed, ${sums[2]} skipped`);
await redis?.kill();
Deno.exit(hasFailed ? 1 : 0);

/** The last line that the tests print. */
async function runTests(combination: readonly BackEnd[]): Promise<string> {
  const servers: SharedServers = {
    ...(combination.includes("postgres") && { emptyDatabase }),
    ...(s3 && combination.includes("s3") && {
      s3: { place: s3.bucket(), bucketsFolder: s3.bucketsFolder },
    }),
    ...(redis && combination.includes("redis") && { redis: redis.address }),
  };
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", "scripts/test.ts", ...words],
    // One process has the servers at a time.
    env: { [SERVERS_VARIABLE]: JSON.stringify(servers), TEST_JOBS: "1" },
    stdout: "piped",
    // A group of its own: it ends with all that the tests started.
    detached: true,
  }).spawn();
  // A larder that starts would wait for its servers, which end, too.
  endTests = () => Deno.kill(-child.pid, "SIGKILL");
  let last = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    await Deno.stdout.write(new TextEncoder().encode(text));
    last = (last + text).slice(-200);
  }
  await child.status;
  endTests = () => {};
  return last.trimEnd().split("\n").at(-1) ?? "";
}

function nameOf(combination: readonly BackEnd[]): string {
  const has = (one: BackEnd) => combination.includes(one);
  return [
    has("postgres") ? "PostgreSQL" : "SQLite",
    has("s3") ? "S3" : "local",
    has("redis") ? "Redis" : "own locks",
  ].join(", ");
}
