import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { publishNar } from "../../../src/cache/nar/publish_nar.ts";
import { WatchedNarStore } from "../../../src/storage/watched_nar_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { fileOf, hash, narOf, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("publish: a store that is known to be away leaves no intent for each NAR", async () => {
  using folder = tempFolder();
  let [nowMs, isAway] = [0, true];
  const inner = new MemoryNarStore();
  const fails = (operation: "put" | "remove") => (...args: never[]) =>
    isAway
      ? Promise.reject(new Failure("unavailable", "no answer"))
      : Reflect.apply(inner[operation], inner, args);
  const nars = new WatchedNarStore(
    Object.assign(Object.create(inner), { put: fails("put"), remove: fails("remove") }),
    { log: createLogger("error", { write() {} }), nowMs: () => nowMs },
  );
  const metadata = new MemoryMetadataStore();
  const publish = async (seed: string) => {
    const path = `${folder.path}/${seed}`;
    Deno.writeTextFileSync(path, "0123456789");
    const { name } = narOf(hash(seed));
    await metadata.apply([put(hash(seed), [])]);
    const deps = { nars, metadata, nowMs: () => nowMs, owner: "us" };
    await publishNar(deps, { ...fileOf(name, 10), name, path });
  };
  const left = async () => (await metadata.pendingFiles()).length;

  await assert.rejects(publish("a"), { kind: "unavailable" });
  assert.equal(await left(), 1, "larder finds out");
  nowMs += 2_000;
  for (const seed of ["b", "c"]) await assert.rejects(publish(seed), { kind: "unavailable" });
  assert.equal(await left(), 1);
  // The trial of a probe is no NAR: the store takes one again.
  isAway = false;
  Deno.writeTextFileSync(`${folder.path}/trial`, "x");
  await nars.put(fileOf(narOf("trial").name, 1).at, `${folder.path}/trial`);
  await publish("d");
});
