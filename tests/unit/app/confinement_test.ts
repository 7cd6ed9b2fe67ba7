import assert from "node:assert/strict";
import { confinedTo, neededFiles } from "../../../src/app/confinement.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import type { Attempts } from "../../support/confined_worker.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("confinement: a thread touches what the settings name, nothing else", async () => {
  using folder = tempFolder();
  const at = (name: string) => `${folder.path}/${name}`;
  for (const name of ["storage", "temp", "database", "keys", "elsewhere"]) Deno.mkdirSync(at(name));
  for (const name of ["certificate", "elsewhere/secret"]) Deno.writeTextFileSync(at(name), "");
  const args = [
    `--cache-storage-local=${at("storage")}`,
    `--cache-temp-path=${at("temp")}`,
    `--cache-database-url=sqlite:${at("database/db")}`,
    `--cache-secret-key-path=${at("keys/own")}`,
    `--cache-upstream-ca-file=${at("certificate")}`,
  ];
  const { settings } = resolveSettings(inputsOf({ args }));
  const permissions = confinedTo(neededFiles(settings, () => undefined));
  const write = ["storage/file", "temp/file", "database/db-wal", "keys/new"].map(at);
  const read = [at("certificate"), new URL("../../../deno.json", import.meta.url).pathname];

  const allowed = await tryIn(permissions, {
    read: [...read, at("elsewhere/secret"), "/etc/hostname", "/proc/self/environ"],
    write: [...write, at("elsewhere/new"), at("file"), at("certificate")],
    run: ["true"],
  });

  assert.deepEqual(allowed, [...read, ...write]);
});

/** What a Worker with these permissions may do of the attempts. */
async function tryIn(
  permissions: Deno.PermissionOptionsObject,
  attempts: Attempts,
): Promise<readonly string[]> {
  const url = new URL("../../support/confined_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module", deno: { permissions } });
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  worker.postMessage(attempts);
  try {
    return await promise;
  } finally {
    worker.terminate();
  }
}
