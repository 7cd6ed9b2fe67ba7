import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Download } from "../../../src/cache/download/run_download.ts";
import { GrowingFile } from "../../../src/cache/download/growing_file.ts";
import { keepDownload } from "../../../src/cache/download/received_files.ts";
import {
  isPublishing,
  notKeptBy,
  type PublishNarDeps,
} from "../../../src/cache/nar/publish_nar.ts";
import { Failure } from "../../../src/base/failure.ts";
import { IntentLost, type NarRow, ReservationLost } from "../../../src/metadata/metadata_store.ts";
import { type NarHash, sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import type { StoredName } from "../../../src/nix/stored_name.ts";
import { recover } from "../../../src/space/recover.ts";
import { Sweeper } from "../../../src/space/sweeper.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { hash, put, rowOf } from "../../support/metadata_rows.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { STAYS } from "../../support/staying_client.ts";
import { NO_SPOOL } from "../../support/no_spool.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const TEXT = "the bytes of a NAR file";
const DIGEST = createHash("sha256").update(TEXT).digest();
const NAR: NarRow = {
  name: narName(sha256FromDigest(DIGEST), "none"),
  compression: "none",
  narHash: sha256FromDigest(DIGEST) as NarHash,
  narSize: TEXT.length,
};
const log = createLogger("error", { write() {} });

Deno.test("publish: the row has the name and the seal of the object that is there", async () => {
  await using scene = await Scene.open();
  await scene.keep();
  const kept = (await scene.metadata.findNar(NAR.name))?.kept;
  assert.ok(kept);
  await using stored = await scene.nars.open(kept.at, STAYS);
  assert.equal(stored?.seal, kept.seal);
  assert.deepEqual(await scene.left(), { objects: [kept.at], pending: [] });
});

Deno.test("publish: where the store does not take the object nothing is left of it", async () => {
  await using scene = await Scene.open();
  scene.deps.nars.put = () => Promise.reject(new Error("the disk is full"));
  await assert.rejects(scene.keep(), /the disk is full/);
  assert.deepEqual(await scene.left(), { objects: [], pending: [] });
});

Deno.test("publish: an object neither stored nor removed counts until it goes", async () => {
  await using scene = await Scene.open();
  const { metadata, nars } = scene;
  scene.deps.nars.put = async (at, path) => {
    await nars.put(at, path);
    throw new Error("the disk is full");
  };
  scene.deps.nars.remove = () => Promise.reject(new Error("the disk is ill"));
  await assert.rejects(scene.keep(), /the disk is full/);
  assert.equal((await scene.left()).objects.length, 1);
  assert.equal((await metadata.stock()).pendingBytes, TEXT.length);
  await new Sweeper({ metadata, nars, owner: "we", log }).sweepOwn();
  assert.deepEqual(await scene.left(), { objects: [], pending: [] });
});

Deno.test("publish: where everything fails the first error is thrown", async () => {
  await using scene = await Scene.open();
  const failed = () => Promise.reject(new Error("and then this"));
  scene.deps.nars.put = () => {
    scene.deps.nars.remove = scene.deps.metadata.apply = failed;
    return Promise.reject(new Error("the disk is full"));
  };
  await assert.rejects(scene.keep(), /the disk is full/);
});

Deno.test("publish: no object is stored before its intent, and no row before its object", async () => {
  await using scene = await Scene.open();
  const { apply } = scene.metadata;
  const { put } = scene.nars;
  const steps: string[] = [];
  const later = () => new Promise((resolve) => setTimeout(resolve, 0));
  scene.deps.metadata.apply = async (changes) => {
    await later();
    await apply.call(scene.metadata, changes);
    steps.push(...changes.map(({ kind }) => kind));
  };
  scene.deps.nars.put = async (...args) => {
    steps.push("put begins");
    await later();
    const seal = await put.apply(scene.nars, args);
    steps.push("put");
    return seal;
  };
  await scene.keep();
  assert.deepEqual(steps.slice(-4), ["nar-publishing", "put begins", "put", "nar-kept"]);
});

Deno.test("publish: an error tells which part of the storage did not take the file", async () => {
  const away = new Failure("unavailable", "Cannot reach the bucket");
  const cases = [
    ["put", away, "storage"],
    ["put", new Error("read-only file system"), "disk"],
    ["put", new Failure("broken", "Cannot write"), "disk"],
    ["apply", new Error("database is locked"), "database"],
    ["apply", away, "database"],
    ["apply", new Error("database or disk is full"), "disk"],
  ] as const;
  for (const [call, error, part] of cases) {
    await using scene = await Scene.open();
    if (call === "put") scene.deps.nars.put = () => Promise.reject(error);
    else scene.deps.metadata.apply = () => Promise.reject(error);
    await assert.rejects(scene.keep(), (thrown) => {
      assert.equal(notKeptBy(thrown), part, `${call}: ${error.message}`);
      return true;
    });
  }
  assert.equal(notKeptBy(new Error("of the spool")), "disk");
  assert.equal(notKeptBy("no error"), "disk");
});

Deno.test("publish: where its row cannot be written the object goes", async () => {
  await using scene = await Scene.open();
  const { apply } = scene.metadata;
  scene.deps.metadata.apply = (changes) => {
    const isKeeping = changes.some(({ kind }) => kind === "nar-kept");
    if (isKeeping) return Promise.reject(new Error("the database is full"));
    return apply.call(scene.metadata, changes);
  };
  await assert.rejects(scene.keep(), /the database is full/);
  assert.deepEqual(await scene.left(), { objects: [], pending: [] });
});

Deno.test("publish: a row whose commit is done stays with its object, though no answer came", async () => {
  await using scene = await Scene.open();
  scene.endAnswers({ kept: "done", thenAway: false });
  await scene.keep();
  const kept = (await scene.metadata.findNar(NAR.name))?.kept;
  assert.deepEqual(await scene.left(), { objects: [kept?.at], pending: [] });
});

for (const kept of ["done", "not done"] as const) {
  Deno.test(`publish: while the database is away a commit that is ${kept} stays as it is`, async () => {
    await using scene = await Scene.open();
    const back = scene.endAnswers({ kept, thenAway: true });
    await assert.rejects(scene.keep(), /away/);
    assert.equal((await scene.left()).objects.length, 1, "nobody knows yet whether a row keeps it");
    back();
    const { metadata, nars } = scene;
    await recover({ metadata, nars, spool: NO_SPOOL, member: "we", isPublishing, log });
    const row = (await metadata.findNar(NAR.name))?.kept;
    assert.equal(row !== undefined, kept === "done");
    assert.deepEqual(await scene.left(), { objects: row ? [row.at] : [], pending: [] });
  });
}

Deno.test("publish: nobody settles the intent of an object that is on its way", async () => {
  await using scene = await Scene.open();
  const { metadata, nars } = scene;
  const put = nars.put.bind(nars);
  scene.deps.nars.put = async (at, path) => {
    const seal = await put(at, path);
    await recover({ metadata, nars, spool: NO_SPOOL, member: "we", isPublishing, log });
    return seal;
  };
  await scene.keep();
  const kept = (await metadata.findNar(NAR.name))?.kept;
  assert.deepEqual(await scene.left(), { objects: [kept?.at], pending: [] });
});

Deno.test("publish: a process taken for dead keeps nothing, and leaves nothing", async () => {
  for (const when of ["before", "after"] as const) {
    await using scene = await Scene.open();
    const { metadata, nars } = scene;
    const deps = { metadata, nars, spool: NO_SPOOL, member: "other", log };
    const settle = () => recover(deps);
    const put = nars.put.bind(nars);
    scene.deps.nars.put = async (at, path) => {
      if (when === "before") await settle();
      const seal = await put(at, path);
      if (when === "after") await settle();
      return seal;
    };
    await assert.rejects(scene.keep(), IntentLost);
    assert.equal((await metadata.findNar(NAR.name))?.kept, undefined);
    assert.deepEqual(await scene.left(), { objects: [], pending: [] });
  }
});

Deno.test("publish: a process taken for dead keeps nothing that is being removed", async () => {
  await using scene = await Scene.open();
  const { metadata, nars } = scene;
  const [removed, awake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const remove = async (at: StoredName) => {
    const was = await nars.remove(at);
    removed.resolve();
    await awake.promise;
    return was;
  };
  const deps = { metadata, nars: { remove }, spool: NO_SPOOL, member: "other", log };
  let settled: Promise<void> | undefined;
  scene.deps.nars.put = async (at, path) => {
    const seal = await nars.put(at, path);
    settled = recover(deps);
    await removed.promise;
    return seal;
  };
  await assert.rejects(scene.keep(), IntentLost);
  awake.resolve();
  await settled;
  assert.equal((await metadata.findNar(NAR.name))?.kept, undefined);
  assert.deepEqual(await scene.left(), { objects: [], pending: [] });
});

Deno.test("publish: a file without its reservation is not kept, and nothing is left", async () => {
  await using scene = await Scene.open();
  const { metadata } = scene;
  await metadata.beat("we", { reservedBytes: 100, limitBytes: 100 });
  await metadata.leave("we");
  await assert.rejects(scene.keep(100), ReservationLost);
  assert.deepEqual(await scene.left(), { objects: [], pending: [] });
  await metadata.beat("we", { reservedBytes: 100, limitBytes: 100 });
  await scene.keep(100);
  assert.equal((await metadata.stock()).reservedBytes, 0);
});

/** A download that has come in whole. */
class Scene implements AsyncDisposable {
  readonly nars = new MemoryNarStore();
  readonly metadata = new MemoryMetadataStore();
  readonly deps: PublishNarDeps = {
    nars: { put: this.nars.put.bind(this.nars), remove: this.nars.remove.bind(this.nars) },
    metadata: {
      apply: this.metadata.apply.bind(this.metadata),
      findNar: this.metadata.findNar.bind(this.metadata),
    },
    nowMs: () => 1,
    owner: "we",
  };
  readonly #folder = tempFolder();

  static async open(): Promise<Scene> {
    const scene = new Scene();
    const path = hash("a");
    await scene.metadata.apply([{ ...put(path, []), nar: NAR, row: rowOf(path, NAR) }]);
    return scene;
  }

  /** `reservedBytes`: in the ledger. */
  async keep(reservedBytes?: number): Promise<void> {
    const path = `${this.#folder.path}/growing`;
    Deno.writeTextFileSync(path, TEXT);
    const file = new GrowingFile(path);
    const download = new Download({ name: NAR.name, file, startedAtMs: 0, origin: "client" });
    using _use = download.file.use();
    download.advance({ type: "opened", fileSize: TEXT.length });
    const measure = { kind: "measured", digest: DIGEST, narSize: TEXT.length } as const;
    const transfer = { measure: async () => measure, judged: () => undefined };
    const end = { fileSize: TEXT.length, digest: DIGEST, maybeShort: false };
    const received = { transfer, end: { type: "end", ...end }, reservedBytes } as const;
    await keepDownload(this.deps, download, NAR, received);
  }

  /** The answer to the row of the object is lost. Call the result when the database is back. */
  endAnswers(
    { kept, thenAway }: { readonly kept: "done" | "not done"; readonly thenAway: boolean },
  ): () => void {
    const { metadata } = this;
    let isAway = false;
    const failed = () => new Failure("unavailable", "the database is away");
    this.deps.metadata.apply = async (changes) => {
      if (isAway) throw failed();
      const isKeeping = changes.some(({ kind }) => kind === "nar-kept");
      if (!isKeeping || kept === "done") await metadata.apply(changes);
      isAway = isKeeping && thenAway;
      if (isKeeping) throw failed();
    };
    this.deps.metadata.findNar = async (name) => {
      if (isAway) throw failed();
      return await metadata.findNar(name);
    };
    return () => void (isAway = false);
  }

  /** Objects in the store, and files that are still pending. */
  async left() {
    const objects = await Array.fromAsync(this.nars.list(""), ({ at }) => at);
    return { objects, pending: await this.metadata.pendingFiles() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.metadata[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}
