import assert from "node:assert/strict";
import { openSigningKey, planSigningKey, presentKey } from "../../../src/app/own_key.ts";
import type { Facts } from "../../../src/base/failure.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { MemoryKeyKeeper } from "../../support/memory_key_keeper.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const POSTGRES = "--cache-database-url=postgres://larder@d.example/larder";

/** The start of a larder: its key and its warnings. */
async function started(
  storage: string,
  keys: MemoryKeyKeeper | undefined,
  ...args: readonly string[]
) {
  const database = keys === undefined ? [] : [POSTGRES];
  const all = [`--cache-storage-local=${storage}`, ...database, ...args];
  const { settings } = await readSettings(inputsOf({ args: all }));
  const plan = await planSigningKey(settings, { storage });
  assert.ok(plan);
  const warned: Facts[] = [];
  const log = { event: (_kind: string, facts: Facts = {}) => void warned.push(facts) };
  const key = await openSigningKey(plan, keys, log);
  assert.equal((await presentKey(settings, storage, keys))?.text, key.text);
  return { text: key.text, used: warned.map(({ used }) => used) };
}

Deno.test("own key: the larders of one database share one, and write no file", async () => {
  using one = tempFolder();
  using other = tempFolder();
  const keys = new MemoryKeyKeeper();
  const first = await started(one.path, keys);
  assert.deepEqual(await started(other.path, keys), { text: first.text, used: [] });
  assert.deepEqual([...Deno.readDirSync(one.path), ...Deno.readDirSync(other.path)], []);
});

Deno.test("own key: a storage that has a key file brings it into the database", async () => {
  using storage = tempFolder();
  const { text } = generateSecretKey("clients-trust-it");
  Deno.writeTextFileSync(`${storage.path}/secret-key`, text, { mode: 0o600 });
  const keys = new MemoryKeyKeeper();
  assert.deepEqual(await started(storage.path, keys), { text, used: [] });
  assert.equal(keys.text, text);
});

Deno.test("own key: the database wins over the file of a storage, and says so", async () => {
  using storage = tempFolder();
  await started(storage.path, undefined);
  const keys = new MemoryKeyKeeper();
  keys.text = generateSecretKey("shared").text;
  assert.deepEqual(await started(storage.path, keys), { text: keys.text, used: ["database"] });
});

Deno.test("own key: a file of the option wins over the database, and says so", async () => {
  using storage = tempFolder();
  const path = `${storage.path}/key`;
  const { text } = generateSecretKey("of-a-file");
  Deno.writeTextFileSync(path, text, { mode: 0o600 });
  const keys = new MemoryKeyKeeper();
  const option = `--cache-secret-key-path=${path}`;
  assert.deepEqual(await started(storage.path, keys, option), { text, used: [] });
  assert.equal(keys.text, undefined, "a file keeps the secret out of the database");
  keys.text = generateSecretKey("shared").text;
  assert.deepEqual(await started(storage.path, keys, option), { text, used: ["file"] });
});

Deno.test("own key: a database without a usable key ends the start", async () => {
  using storage = tempFolder();
  const keys = new MemoryKeyKeeper();
  keys.text = "no key";
  await assert.rejects(started(storage.path, keys), /signing key in the database: .*it is not/);
});
