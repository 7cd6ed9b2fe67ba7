import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { PERMISSIONS, startLarder } from "../support/larder_process.ts";
import { testWhere } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { THREADS_UNKNOWN, threadsOf } from "../support/threads_of.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 100_000 });

Deno.test("start: with every upstream down it serves, and an unknown path is 404", async () => {
  await using larder = await startLarder({ "cache-upstream-url": "http://127.0.0.1:1" });
  const unknown = await fetch(`${larder.url}/${object.storePathHash}.narinfo`);
  await unknown.body?.cancel();
  assert.equal(unknown.status, 404);
});

const METERED = {
  "cache-upstream-url": [],
  "otel-enabled": "true",
  "prometheus-enabled": "true",
};

Deno.test("start: of the system it asks for four facts, and to slow down a thread", async () => {
  assert.deepEqual(PERMISSIONS.filter((word) => /sys|run|ffi/.test(word)), [
    "--allow-sys=hostname,statfs,getPriority,setPriority,networkInterfaces",
  ]);
  await using larder = await startLarder(METERED);
  await eventually("the free space is told", async () => {
    const metrics = await (await fetch(`${larder.url}/metrics`)).text();
    assert.match(metrics, /^process_resident_memory_bytes [1-9]/m);
    return /^larder_storage_free_bytes [1-9]/m.test(metrics);
  });
});

testWhere(
  Deno.env.has("LARDER_EXECUTABLE") ? "an executable has its permissions built in" : "",
  "start: the host's name is permission enough, and then no free space is shown",
  async () => {
    const without = `for word; do
        shift
        case $word in --allow-sys=*) word=--allow-sys=hostname ;; esac
        set -- "$@" "$word"
      done
      exec "$@"`;
    await using larder = await startLarder(METERED, {}, ["sh", "-c", without, "sh"]);
    await larder.logged("reconciled");
    const metrics = await (await fetch(`${larder.url}/metrics`)).text();
    assert.match(metrics, /^process_resident_memory_bytes [1-9]/m);
    assert.doesNotMatch(metrics, /free_bytes [0-9]/);
  },
);

testWhere(
  THREADS_UNKNOWN,
  "start: the Workers for NARs run once a client pulls, before it requests a NAR",
  async () => {
    await using larder = await startLarder({ "cache-upstream-url": [] });
    await larder.logged("reconciled");
    const idle = workersOf(larder.pid);
    await (await fetch(`${larder.url}/nix-cache-info`)).text();
    await eventually("two more Workers run", () => workersOf(larder.pid) >= idle + 2);
  },
);

/** Deno names their threads. */
function workersOf(pid: number): number {
  return threadsOf(pid).filter(({ name }) => name.startsWith("worker")).length;
}

Deno.test("start: the signing key is made once, for its owner alone, and named", async () => {
  using folder = tempFolder();
  const flags = { "cache-storage-local": folder.path, "cache-hostname": "larder.test" };
  const keys = [];
  for (const _ of ["first start", "second start"]) {
    await using larder = await startLarder(flags);
    keys.push(await (await fetch(`${larder.url}/pubkey`)).text());
    larder.kill("SIGTERM");
    assert.equal((await larder.ended).code, 0);
  }
  assert.match(keys[0] ?? "", /^larder\.test:[A-Za-z0-9+/]{43}=\n$/);
  assert.equal(keys[0], keys[1]);
  assert.equal((Deno.statSync(`${folder.path}/secret-key`).mode ?? 0) & 0o777, 0o600);
});

Deno.test("start: a key file is made in a new storage, a mistyped one is an error", async () => {
  using folder = tempFolder();
  const flags = { "cache-storage-local": `${folder.path}/data`, "cache-hostname": "larder.test" };
  {
    await using larder = await startLarder({
      ...flags,
      "cache-secret-key-path": `${folder.path}/key`,
    });
    larder.kill("SIGTERM");
    assert.equal((await larder.ended).code, 0);
  }
  assert.ok(Deno.readTextFileSync(`${folder.path}/key`).startsWith("larder.test:"));
  const mistyped = { ...flags, "cache-secret-key-path": `${folder.path}/kye` };
  await assert.rejects(
    startLarder(mistyped),
    /larder: Cannot use secret key file [^\n]*kye: it is missing/,
  );
  assert.throws(() => Deno.statSync(`${folder.path}/kye`), Deno.errors.NotFound);
});

/** Flags that no server can start with, and the line that it prints. */
const IMPOSSIBLE: Readonly<Record<string, (folder: string) => [Record<string, string>, RegExp]>> = {
  "a directory below a file": (folder) => {
    Deno.writeTextFileSync(`${folder}/file`, "");
    return [{ "cache-storage-local": `${folder}/file/data` }, /Cannot write to directory .*file/];
  },
  "a temporary directory that cannot be": () => [
    { "cache-temp-path": "/proc/larder" },
    /Cannot write to directory \/proc\/larder: .*--cache-temp-path/,
  ],
  "a key file without a key": (folder) => {
    Deno.writeTextFileSync(`${folder}/key`, "not a key\n");
    return [{ "cache-secret-key-path": `${folder}/key` }, /Cannot use secret key file .*\/key: /];
  },
  "a database that is none": (folder) => {
    Deno.writeTextFileSync(`${folder}/db`, "not a database ".repeat(100));
    return [{ "cache-database-url": `sqlite:${folder}/db` }, /Cannot open database .*\/db: /];
  },
  "a key file where none can be": (folder) => [
    { "cache-secret-key-path": `${folder}/none/key` },
    /Cannot make secret key file .*\/none\/key: /,
  ],
  "a netrc file that is missing": (folder) => [
    { "netrc-file": `${folder}/netrc` },
    /Cannot use --netrc-file .*\/netrc: /,
  ],
  "a CA file without certificates": (folder) => {
    Deno.writeTextFileSync(`${folder}/ca`, "nothing\n");
    return [{ "cache-upstream-ca-file": `${folder}/ca` }, /--cache-upstream-ca-file .*no PEM/];
  },
};

for (const [name, prepare] of Object.entries(IMPOSSIBLE)) {
  Deno.test(`start: ${name} ends it with one plain sentence`, async () => {
    using folder = tempFolder();
    const [flags, sentence] = prepare(folder.path);
    await assert.rejects(startLarder({ "cache-storage-local": folder.path, ...flags }), (error) => {
      const said = String(error).split("larder has ended: ")[1] ?? "";
      assert.match(said, sentence);
      assert.match(said, /^larder: [^\n]*\n$/);
      return true;
    });
    assert.ok(!existsSync(`${folder.path}/secret-key`), "it leaves no key behind");
  });
}

Deno.test("start: a port in use ends it with one sentence that names the option", async () => {
  await using first = await startLarder({});
  await assert.rejects(
    startLarder({ "server-addr": `127.0.0.1:${first.port}` }),
    /larder: Cannot listen on 127\.0\.0\.1:\d+: .*--server-addr\n$/,
  );
});

Deno.test("start: a unix socket that a server answers on is left to it", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/socket`;
  const flags = { "server-addr": `unix:${path}` };
  {
    await using _first = await startLarder(flags);
    const { ino } = Deno.lstatSync(path);
    await assert.rejects(
      startLarder(flags),
      /larder: Cannot listen on unix:.*: another program does; .*--server-addr\n$/,
    );
    assert.equal(Deno.lstatSync(path).ino, ino);
  }
  assert.ok(Deno.lstatSync(path).isSocket, "the first was killed and left its socket");
  await using _second = await startLarder(flags);
});

Deno.test("start: without a host it listens for IPv4 too", async () => {
  await using larder = await startLarder({ "server-addr": ":0" });
  const answer = await fetch(`http://127.0.0.1:${larder.port}/healthz`);
  assert.equal(await answer.text(), "OK\n");
});

Deno.test("netrc: the login goes to narinfo, NAR and cache info, not to the log", async () => {
  using folder = tempFolder();
  const netrc = `${folder.path}/netrc`;
  Deno.writeTextFileSync(netrc, "machine 127.0.0.1 login builder password hunter2\n");
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using larder = await startLarder({
    "netrc-file": netrc,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "log-level": "debug",
  });
  const narinfo = await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
  await (await fetch(`${larder.url}/${/^URL: (.*)$/m.exec(narinfo)?.[1]}`)).bytes();
  await upstream.requested("/nix-cache-info");

  const expected = `Basic ${btoa("builder:hunter2")}`;
  assert.equal(upstream.requests.length, 3);
  for (const { headers } of upstream.requests) {
    assert.equal(headers.get("authorization"), expected);
  }
  const log = JSON.stringify(larder.lines);
  assert.ok(!log.includes("hunter2") && !log.includes(btoa("builder:hunter2")));
});

Deno.test("netrc: credentials in the URL of an upstream are sent, and not logged", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url.replace("://", "://builder:hunter2@"),
    "cache-upstream-public-key": upstream.publicKey,
    "log-level": "debug",
  });
  await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
  const [request] = upstream.matching(/narinfo$/);
  assert.equal(request?.headers.get("authorization"), `Basic ${btoa("builder:hunter2")}`);
  assert.ok(!JSON.stringify(larder.lines).includes("hunter2"));
});
