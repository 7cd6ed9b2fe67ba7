import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { BrokenEntry, ImportSource, SourceNar } from "../../src/cache/import/import_source.ts";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { STAYS } from "../support/staying_client.ts";
import type { Clauses } from "./contract.ts";

/** Another cache with some store objects. */
export interface ImportScene {
  readonly source: ImportSource;
  /** Sorted. */
  readonly storePaths: readonly string[];
  /** The store path hashes of its pin roots. */
  readonly pinned: readonly string[];
  /** Makes one narinfo unusable, and returns its store path. */
  spoil(): string;
  /** Removes the bytes of all NARs. */
  loseNars(): void;
}

const GOES_ON = STAYS.signal;

export const importSourceClauses: Clauses<ImportScene> = {
  "each store path comes once, as often as one looks": async ({ source, storePaths }) => {
    for (let look = 0; look < 2; look++) {
      const { paths, broken } = await readAll(source);
      assert.deepEqual([paths, broken], [storePaths, []]);
    }
    if (source.entryCount !== undefined) assert.equal(source.entryCount, storePaths.length);
  },

  "its NARs are those of its narinfos, and of the size that they have": async ({ source }) => {
    for await (const entry of source.entries(GOES_ON)) {
      assert.ok("narinfo" in entry);
      const { narinfo: { narHash, narSize, compression }, nar } = entry;
      const bytes = await bytesOf(nar);
      if (nar.kind === "stream") assert.equal(nar.fileSize ?? bytes.length, bytes.length);
      const hash = createHash("sha256");
      const { body } = new Response(bytes);
      assert.ok(body);
      for await (const piece of decoded(body, { compression, narSizeMax: narSize })) {
        hash.update(piece);
      }
      assert.equal(sha256FromDigest(hash.digest()), narHash);
    }
  },

  "each entry has the time of a use": async ({ source }) => {
    for await (const entry of source.entries(GOES_ON)) {
      assert.ok("narinfo" in entry);
      assert.ok(entry.usedAtMs > 0 && entry.usedAtMs <= Date.now(), `${entry.usedAtMs}`);
    }
  },

  "an unusable narinfo is a broken entry, and the others come": async (scene) => {
    const { source, storePaths } = scene;
    const spoilt = scene.spoil();
    const { paths, broken: [broken, ...more] } = await readAll(source);
    assert.deepEqual(paths, storePaths.filter((path) => path !== spoilt));
    assert.deepEqual(more, []);
    assert.ok(broken && spoilt.includes(broken.name.replace("/nix/store/", "")));
    assert.match(broken.problem, /^[^\n]+[^\n.]$/);
  },

  "a NAR that is gone is a broken entry, or an error of its bytes": async (scene) => {
    const { source, storePaths } = scene;
    scene.loseNars();
    let entries = 0;
    for await (const entry of source.entries(GOES_ON)) {
      entries++;
      if ("narinfo" in entry) await assert.rejects(bytesOf(entry.nar));
    }
    assert.equal(entries, storePaths.length);
  },

  "a signal ends the entries": async ({ source }) => {
    const abort = new AbortController();
    let entries = 0;
    for await (const _ of source.entries(abort.signal)) {
      entries++;
      abort.abort();
    }
    assert.equal(entries, 1);
    assert.deepEqual(await Array.fromAsync(source.entries(abort.signal)), []);
  },

  "pins() has the pin roots of the other cache": async ({ source, pinned }) => {
    assert.deepEqual(source.pins().map(({ storePathHash }) => storePathHash), pinned);
  },
};

async function readAll(source: ImportSource) {
  const paths: string[] = [];
  const broken: BrokenEntry[] = [];
  for await (const entry of source.entries(GOES_ON)) {
    if ("narinfo" in entry) paths.push(entry.narinfo.storePath);
    else broken.push(entry);
  }
  return { paths: paths.toSorted(), broken };
}

async function bytesOf(nar: SourceNar): Promise<Uint8Array<ArrayBuffer>> {
  if (nar.kind === "file") return await Deno.readFile(nar.path);
  return await new Response(await nar.open(GOES_ON)).bytes();
}
