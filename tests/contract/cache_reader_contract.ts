import assert from "node:assert/strict";
import type { CacheReader } from "../../src/cache/import/binary_cache/binary_cache_source.ts";
import type { SourceNar } from "../../src/cache/import/import_source.ts";
import { STAYS } from "../support/staying_client.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Clauses } from "./contract.ts";

/** A reader of a binary cache that has OBJECT. */
export interface ReaderScene {
  readonly reader: CacheReader;
  /** The folder of the cache's files. */
  readonly folder: string;
}

export const OBJECT = makeStoreObject({ name: "thing-1.0" });
const { storePath, storePathHash } = OBJECT;
const ABSENT = makeStoreObject({ name: "absent-1.0" }).storePathHash;
const OTHER_HASH = `sha256:${"0".repeat(52)}`;
const GOES_ON = STAYS.signal;

export const cacheReaderClauses: Clauses<ReaderScene> = {
  "read() has the narinfo, and its NAR": async ({ reader, folder }) => {
    const { narinfo, nar, usedAtMs } = await reader.read(storePathHash, GOES_ON);
    assert.equal(narinfo.storePath, storePath);
    assert.ok(usedAtMs > 0 && usedAtMs <= Date.now());
    assert.deepEqual(await bytesOf(nar), Deno.readFileSync(`${folder}/${narinfo.url}`));
  },

  "read() has the former names, where larder wrote some": async ({ reader, folder }) => {
    assert.equal((await reader.read(storePathHash, GOES_ON)).formerNames, undefined);
    const file = fileOf(folder, storePathHash);
    const text = Deno.readTextFileSync(file).replace(/^FileHash: .*$/m, `FileHash: ${OTHER_HASH}`);
    Deno.writeTextFileSync(file, text);
    assert.equal((await reader.read(storePathHash, GOES_ON)).formerNames, undefined);
    Deno.writeTextFileSync(`${folder}/${storePathHash}.names`, "name key:signature\n");
    const { formerNames } = await reader.read(storePathHash, GOES_ON);
    assert.equal(formerNames, "name key:signature\n");
  },

  "an absent narinfo is a Failure": async ({ reader }) => {
    await assert.rejects(reader.read(ABSENT, GOES_ON), { name: "Failure", kind: "absent" });
  },

  "a text that is no narinfo is a Failure": async ({ reader, folder }) => {
    Deno.writeTextFileSync(fileOf(folder, storePathHash), "no narinfo");
    await assert.rejects(reader.read(storePathHash, GOES_ON), { name: "Failure" });
  },

  "a narinfo of another path is a Failure": async ({ reader, folder }) => {
    Deno.copyFileSync(fileOf(folder, storePathHash), fileOf(folder, ABSENT));
    await assert.rejects(reader.read(ABSENT, GOES_ON), { name: "Failure" });
  },

  "a narinfo whose URL leaves the cache is a Failure": async ({ reader, folder }) => {
    const file = fileOf(folder, storePathHash);
    const text = Deno.readTextFileSync(file);
    for (const url of ["../x.nar.xz", "nar/../../x.nar.xz", "http://x.example/x.nar.xz"]) {
      Deno.writeTextFileSync(file, text.replace(/^URL: .*$/m, `URL: ${url}`));
      await assert.rejects(reader.read(storePathHash, GOES_ON), { name: "Failure" }, url);
    }
  },

  "a NAR that is gone is an error of its bytes": async ({ reader, folder }) => {
    const { nar } = await reader.read(storePathHash, GOES_ON);
    Deno.removeSync(`${folder}/nar`, { recursive: true });
    await assert.rejects(bytesOf(nar));
  },
};

function fileOf(folder: string, hash: typeof storePathHash): string {
  return `${folder}/${hash}.narinfo`;
}

async function bytesOf(nar: SourceNar): Promise<Uint8Array> {
  if (nar.kind === "file") return await Deno.readFile(nar.path);
  return await new Response(await nar.open(GOES_ON)).bytes();
}
