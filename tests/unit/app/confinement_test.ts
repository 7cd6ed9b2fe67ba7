import assert from "node:assert/strict";
import { neededFiles } from "../../../src/app/confinement.ts";
import { FILES_ALONE } from "../../../src/app/workers/verify_thread.ts";
import { NETWORK_ALONE } from "../../../src/app/workers/worker_narinfos.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import type { Attempts } from "../../support/confined_process.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const SCRIPT = new URL("../../support/confined_process.ts", import.meta.url).pathname;

Deno.test("confinement: a process touches the paths that its settings name, nothing else", () => {
  using folder = tempFolder();
  const at = (name: string) => `${folder.path}/${name}`;
  for (const name of ["storage", "temp", "database", "keys", "elsewhere"]) Deno.mkdirSync(at(name));
  for (const name of ["certificate", "elsewhere/secret"]) Deno.writeTextFileSync(at(name), "");
  Deno.symlinkSync(at("storage"), at("linked"));
  const args = [
    `--cache-storage-local=${at("linked")}/`,
    `--cache-temp-path=${at("temp")}`,
    `--cache-database-url=sqlite:${at("database/db")}`,
    `--cache-secret-key-path=${at("keys/own")}`,
    `--cache-upstream-ca-file=${at("certificate")}`,
  ];
  const write = ["linked/file", "temp/file", "database/db-wal", "keys/new"].map(at);
  const read = [at("certificate"), new URL("../../../deno.json", import.meta.url).pathname];

  const allowed = triedBy(args, {
    read: [...read, at("elsewhere/secret"), folder.path, "/etc/hostname", "/tmp"],
    write: [...write, at("elsewhere/new"), at("file"), at("certificate")],
  });

  assert.deepEqual(allowed, [...read, ...write]);
});

Deno.test("confinement: the S3 SDK reads its own files only where it needs keys", () => {
  const home = (name: string) => name === "HOME" ? "/home/ada" : undefined;
  const filesFor = (...args: readonly string[]) =>
    neededFiles(resolveSettings(inputsOf({ args })).settings, home).read;
  const bucket = "--cache-storage-s3-bucket=nars";
  const keys = ["--cache-storage-s3-access-key-id=a", "--cache-storage-s3-secret-access-key=b"];
  assert.ok(filesFor(bucket).includes("/home/ada/.aws"));
  assert.ok(!filesFor(bucket, ...keys).includes("/home/ada/.aws"));
  assert.ok(!filesFor().includes("/home/ada/.aws"));
});

Deno.test("confinement: decoders of NARs read files, and reach nothing else", async () => {
  assert.deepEqual(await allowedTo(FILES_ALONE), ["read"]);
});

Deno.test("confinement: the narinfo Worker reaches the network alone", async () => {
  assert.deepEqual(await allowedTo(NETWORK_ALONE), ["net"]);
});

/** The acts that a Worker with these permissions may do. */
async function allowedTo(permissions: Deno.PermissionOptionsObject): Promise<readonly string[]> {
  using folder = tempFolder();
  const path = `${folder.path}/file`;
  Deno.writeTextFileSync(path, "");
  const url = new URL("../../support/tempted_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module", deno: { permissions } });
  try {
    const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage(path);
    return await promise;
  } finally {
    worker.terminate();
  }
}

Deno.test("confinement: PostgreSQL has the files and the socket that its URL names", () => {
  const url = "postgres:///cache?host=/run/postgresql&sslrootcert=/etc/pg.crt";
  const { settings } = resolveSettings(inputsOf({ args: [`--cache-database-url=${url}`] }));
  const { read, write } = neededFiles(
    settings,
    (name) => name === "HOME" ? "/home/ada" : undefined,
  );
  assert.ok(["/etc/pg.crt", "/home/ada/.pgpass"].every((path) => read.includes(path)));
  assert.ok(write.includes("/run/postgresql") && !write.includes("/etc/pg.crt"));
});

/** Those of the attempts that a confined process may do. */
function triedBy(args: readonly string[], attempts: Attempts): readonly string[] {
  const permissions = ["--no-prompt", "--allow-read=/", "--allow-write=/", "--allow-env"];
  const { stdout, stderr } = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", "--no-check", ...permissions, SCRIPT, ...args],
    env: { ATTEMPTS: JSON.stringify(attempts), NO_COLOR: "1" },
  }).outputSync();
  const out = new TextDecoder().decode(stdout);
  assert.notEqual(out, "", new TextDecoder().decode(stderr));
  return JSON.parse(out);
}

Deno.test("confinement: the start grants files from the root, and neither foreign code nor a prompt", () => {
  const { tasks } = JSON.parse(Deno.readTextFileSync("deno.json"));
  const starts = [tasks.serve.command, Deno.readTextFileSync("scripts/compile.ts")];
  for (const start of starts) {
    const flags = start.match(/--[a-z][-a-z]*(?:=\/)?(?=[\s"])/g) ?? [];
    for (const flag of ["--no-prompt", "--allow-read=/", "--allow-write=/"]) {
      assert.ok(flags.includes(flag), `${flag} in ${flags}`);
    }
    for (const flag of ["--allow-ffi", "--allow-all", "-A"]) {
      assert.ok(!flags.includes(flag), `${flag} in ${flags}`);
    }
  }
});

Deno.test("confinement: a server may read the names of its network", () => {
  const { settings } = resolveSettings(inputsOf());
  assert.ok(neededFiles(settings, () => undefined).read.includes("/etc/resolv.conf"));
});
