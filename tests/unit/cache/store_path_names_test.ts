import assert from "node:assert/strict";
import { StorePathNames } from "../../../src/cache/nar/store_path_names.ts";
import { nameInNarinfo } from "../../../src/nix/narinfo_name.ts";
import { hash, narOf } from "../../support/metadata_rows.ts";

const MEGABYTE = 1 << 20;
const COUNT = 300;

Deno.test("store path names: a name does not keep its narinfo in memory", () => {
  const names = new StorePathNames({
    metadata: {
      narinfosOf: () => Promise.resolve([]),
      findNarinfo: () => Promise.resolve(undefined),
    },
    log: { debug: () => undefined },
  });
  const before = Deno.memoryUsage().heapUsed;
  for (let at = 0; at < COUNT; at++) {
    const storePath = `/nix/store/${hash(`${at}`)}-a-name-of-thirty-characters-${at}`;
    const body = `StorePath: ${storePath}\n${"x".repeat(MEGABYTE)}`;
    const name = nameInNarinfo(body) ?? "";
    names.note(narOf(`${at}`).name, { storePathHash: hash(`${at}`), name });
  }
  assert.equal(names.known(narOf("7").name), "a-name-of-thirty-characters-7");
  const grown = (Deno.memoryUsage().heapUsed - before) / MEGABYTE;
  assert.ok(grown < COUNT / 2, `${grown} MB`);
});
