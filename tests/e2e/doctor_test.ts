import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { freePort } from "../support/free_port.ts";
import { type LarderFlags, PERMISSIONS, startLarder } from "../support/larder_process.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { filesBelow } from "../support/storage_look.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;
const object = makeStoreObject({ name: "tool-1.0", size: 20_000 });
const SECRET = "a-token-that-nobody-may-see";
const PASSWORD = "a-password-that-nobody-may-see";

interface Finding {
  readonly mark: string;
  readonly subject: string;
  readonly fact: string;
  readonly advice?: string;
}

/** Runs the command as its users do, with larder's own permissions. */
async function doctor(
  flags: LarderFlags,
  { words = ["--json"], env = {} }: {
    readonly words?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } = {},
) {
  const options = Object.entries(flags).flatMap(([name, given]) =>
    [given].flat().map((value) => `--${name}=${value}`)
  );
  const executable = Deno.env.get("LARDER_EXECUTABLE");
  const [program = "", ...first] = executable === undefined
    ? [Deno.execPath(), "run", "--cached-only", ...PERMISSIONS, MAIN]
    : [executable];
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args: [...first, "doctor", ...options, ...words],
    clearEnv: true,
    // No Nix and no settings of this machine, unless a test has them.
    env: {
      ...passedOn(),
      ...{ NIX_CONF_DIR: "/nowhere", NIX_STORE_DIR: "/nowhere", NIX_USER_CONF_FILES: "" },
      ...{ XDG_CONFIG_HOME: "/nowhere", ...env },
    },
  }).output();
  const out = new TextDecoder().decode(stdout);
  assert.equal(new TextDecoder().decode(stderr), "");
  const findings: readonly Finding[] = words.includes("--json") ? JSON.parse(out).findings : [];
  const of = (subject: string) => findings.find((one) => one.subject.startsWith(subject));
  const marks = (mark: string) =>
    findings.filter((one) => one.mark === mark)
      .map(({ subject }) => subject.replace(/( of)? http.*/, ""));
  return { code, out, of, marks };
}

Deno.test("doctor: a healthy larder that runs has nothing to mend", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  using nix = tempFolder();
  const flags = {
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-max-size": "10M",
  };
  await using larder = await startLarder({ ...flags, "cache-admin-token": SECRET });
  const port = String(larder.port);
  await servedNar(larder.port, await servedNarinfo(larder.port, object.storePathHash));
  // The client has its last byte before the file is stored.
  await larder.logged("nar cached successfully");
  const key = (await (await fetch(`${larder.url}/pubkey`)).text()).trim();
  Deno.writeTextFileSync(
    `${nix.path}/nix.conf`,
    `substituters = http://localhost:${port}\ntrusted-public-keys = ${key}`,
  );

  const ran = await doctor(
    {
      ...flags,
      "cache-admin-token": SECRET,
      "cache-storage-local": larder.storage,
      "server-addr": `127.0.0.1:${port}`,
    },
    { env: { NIX_CONF_DIR: nix.path, NIX_DAEMON_SOCKET_PATH: "/nowhere" } },
  );

  assert.deepEqual([ran.marks("failed"), ran.marks("warning"), ran.code], [[], [], 0], ran.out);
  // The fake upstream sends no date.
  assert.deepEqual(ran.marks("not checked"), ["clock"]);
  assert.match(ran.of("server")?.fact ?? "", /^runs at http:.*, version /);
  assert.match(ran.of("pull")?.fact ?? "", /tool-1\.0 .*HIT/);
  assert.equal(ran.of("signing key")?.fact, key);
  assert.match(ran.of("nix.conf keys")?.fact ?? "", / is trusted$/);
  assert.ok(!ran.out.includes(SECRET), "it shows no token");
});

Deno.test("doctor: a stopped larder is checked, and its storage stays as it is", async () => {
  using storage = tempFolder();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const { flags } = await stoppedLarder(storage.path, upstream, [object]);
  const before = stateOf(storage.path);

  const ran = await doctor({
    ...flags,
    "cache-max-size": "unlimited",
    "server-addr": `127.0.0.1:${freePort()}`,
  });

  assert.deepEqual(ran.marks("failed"), [], ran.out);
  assert.deepEqual(ran.marks("warning"), ["server", "size limit"]);
  assert.equal(ran.of("database")?.mark, "ok");
  assert.equal(ran.of("signature")?.mark, "ok");
  assert.equal(ran.of("pull")?.mark, "not checked");
  assert.equal(ran.code, 0);
  assert.deepEqual(stateOf(storage.path), before);
});

Deno.test("doctor: a storage of a killed larder stays as it is, too", async () => {
  using storage = tempFolder();
  {
    await using larder = await startLarder({ "cache-storage-local": storage.path });
    larder.kill("SIGKILL");
    await larder.ended;
  }
  const before = stateOf(storage.path);
  const ran = await doctor({
    "cache-storage-local": storage.path,
    "cache-upstream-url": "http://127.0.0.1:9",
    "server-addr": `127.0.0.1:${freePort()}`,
  });
  assert.equal(ran.of("database")?.mark, "ok", ran.out);
  assert.deepEqual(stateOf(storage.path), before);
});

Deno.test("doctor: many faults at once are each found, with what to do, and status 1", async () => {
  using storage = tempFolder();
  using nix = tempFolder();
  const key = generateSecretKey("stranger-1");
  const onRequest = () => undefined;
  await using upstream = await fakeUpstream({ objects: [object], stored: true, key, onRequest });
  const { flags } = await stoppedLarder(storage.path, upstream, [object]);
  upstream.onRequest = ({ path }) =>
    path === "/nix-cache-info"
      ? new Response("StoreDir: /nix/store\n", {
        headers: { date: "Sun, 06 Nov 1994 08:49:37 GMT" },
      })
      : undefined;
  breakDatabase(storage.path);
  Deno.chmodSync(`${storage.path}/secret-key`, 0o644);
  const other = generateSecretKey("larder").publicKey.text;
  Deno.writeTextFileSync(`${nix.path}/nix.conf`, "substituters = http://other.invalid");
  await using stranger = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    return new Response("I am no larder");
  });

  const ran = await doctor(
    {
      ...flags,
      "cache-upstream-url": [upstream.url, "http://127.0.0.1:9"],
      "cache-upstream-public-key": other,
      "cache-max-size": "900T",
      "cache-admin-token": SECRET,
      ...{ "cache-redis-addrs": "127.0.0.1:9", "cache-redis-password": PASSWORD },
      "server-addr": `127.0.0.1:${stranger.addr.port}`,
    },
    { env: { NIX_CONF_DIR: nix.path }, words: ["--json", object.storePathHash] },
  );

  const failed = ["server", "clock", "database", "redis", "upstream", "signature"];
  assert.deepEqual(new Set(ran.marks("failed")), new Set(failed), ran.out);
  assert.match(ran.of("upstream http://127.0.0.1:9")?.advice ?? "", /firewall/);
  assert.match(ran.of("signature")?.advice ?? "", /--cache-upstream-public-key/);
  assert.match(ran.of("database")?.advice ?? "", /fsck --repair/);
  assert.match(ran.of("redis")?.fact ?? "", /refused/i);
  assert.ok(!ran.out.includes(SECRET), "it shows no token");
  assert.ok(!ran.out.includes(PASSWORD), "it shows no password");
  assert.deepEqual(ran.marks("warning"), ["size limit", "permissions", "nix.conf"]);
  assert.equal(ran.code, 1);
});

Deno.test("doctor: people get one line a check, and a line of counts", async () => {
  using storage = tempFolder();
  const { out, code } = await doctor(
    {
      "cache-storage-local": `${storage.path}/none`,
      "cache-upstream-url": "http://127.0.0.1:9",
      "server-addr": `127.0.0.1:${freePort()}`,
      ...{ "server-tls-cert": "/nowhere/cert.pem", "server-tls-key": "/nowhere/key.pem" },
    },
    { words: [] },
  );
  const lines = out.trimEnd().split("\n");
  assert.equal(code, 1);
  const warnings = lines.filter((line) => line.startsWith("warning")).length;
  assert.ok(warnings > 1, out);
  assert.match(lines.at(-1) ?? "", new RegExp(`^2 failed, ${warnings} warnings, \\d+ not checked`));
  assert.match(out, /^failed +certificate: .*\/nowhere\/cert\.pem.*; .*--server-tls-cert/m);
  for (const line of lines.slice(0, -1)) {
    assert.match(line, /^(ok|warning|failed|not checked) +[a-z]/);
  }
  assert.deepEqual([...filesBelow(storage.path)], []);
});

/** The variables by which Deno finds its caches. */
function passedOn(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME"];
  return Object.fromEntries(names.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

/** Sums that are not those of the rows. */
function breakDatabase(storage: string): void {
  using database = new DatabaseSync(`${storage}/db.sqlite`);
  database.exec("UPDATE stock SET kept_bytes = kept_bytes + 1");
}

/** Each file and folder with its time, mode and bytes. */
function stateOf(folder: string): readonly string[] {
  const state: string[] = [];
  const add = (path: string) => {
    const { isDirectory, mtime, ctime, mode } = Deno.lstatSync(path);
    const bytes = isDirectory ? "" : hashOf(Deno.readFileSync(path));
    state.push([path, mtime?.getTime(), ctime?.getTime(), mode, bytes].join(" "));
    if (!isDirectory) return;
    const names = [...Deno.readDirSync(path)].map(({ name }) => name).sort();
    for (const name of names) add(`${path}/${name}`);
  };
  add(folder);
  return state;
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
