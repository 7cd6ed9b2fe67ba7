import assert from "node:assert/strict";
import { hashOfBaseName, parseStorePath } from "../../src/nix/store_path.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, type Closure, type NixObject } from "../support/nix_store_objects.ts";
import { accountsOf, narBytesIn, sampleNarBytes } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MIB = 1024 * 1024;
const LIMIT_BYTES = 10 * MIB;
const SAMPLE_EVERY_MS = 50;
const CLIENTS = 8;
/** No answer is late here, however busy the machine is. */
const LONG_TIMEOUTS = {
  "cache-upstream-dialer-timeout": "60s",
  "cache-upstream-response-header-timeout": "60s",
};
/**
 * One is enough where the machine has time. Else a NAR waits too long for room, becomes a
 * pass-through, and evicts nothing.
 */
const ROUNDS_MAX = 5;

/** A dozen paths: a chain, diamonds, self-references, paths without bytes; some 5 MB. */
const TOOLCHAIN: readonly NixObject[] = [
  { name: "libc", content: { bytes: 1_500_000 }, references: ["libc"] },
  { name: "zlib", content: { bytes: 200_000 }, references: ["libc"] },
  { name: "gmp", content: { bytes: 400_000 }, references: ["libc"] },
  { name: "mpfr", content: { bytes: 300_000 }, references: ["gmp", "libc"] },
  { name: "mpc", content: { bytes: 300_000 }, references: ["gmp", "mpfr", "libc"] },
  { name: "setup-hook", content: "empty file" },
  { name: "locale", content: "empty folder", references: ["setup-hook"] },
  { name: "binutils", content: { bytes: 700_000 }, references: ["zlib", "libc", "binutils"] },
  { name: "gcc", content: { bytes: 1_200_000 }, references: ["mpc", "mpfr", "gmp", "zlib", "gcc"] },
  { name: "wrapper-links", references: ["gcc", "binutils"] },
  { name: "gcc-wrapper", references: ["wrapper-links", "locale", "gcc-wrapper"] },
  { name: "stdenv", references: ["gcc-wrapper", "binutils", "setup-hook"] },
];

/** Five times the limit in all, in closures of three paths. */
const OTHERS: readonly (readonly NixObject[])[] = Array.from({ length: 20 }, (_, at) => [
  { name: `dep-${at}`, content: { bytes: LIMIT_BYTES / 10 } },
  { name: `lib-${at}`, content: { bytes: LIMIT_BYTES / 10 }, references: [`dep-${at}`] },
  { name: `app-${at}`, content: { bytes: LIMIT_BYTES / 20 }, references: [`lib-${at}`] },
]);

nixTest(
  "a pinned closure outlives five times the limit, and goes once it is unpinned",
  async () => {
    using folder = tempFolder();
    using maker = new NixClient();
    const key = await maker.makeKey("upstream-1");
    const publish = async (objects: readonly NixObject[]) => {
      const closure = await addObjects(maker, objects);
      await maker.copyTo(folder.path, closure.top, { compression: "zstd", key });
      return closure;
    };
    const toolchain = await publish(TOOLCHAIN);
    const others: Closure[] = [];
    for (const objects of OTHERS) others.push(await publish(objects));
    await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-max-size": `${LIMIT_BYTES}B`,
      ...LONG_TIMEOUTS,
    });
    const source = { from: [larder.url], trust: [upstream.publicKey] };
    const sampled = sampleNarBytes(larder.storage, SAMPLE_EVERY_MS);

    await pull([toolchain], "copyFrom");
    assert.equal(await pinned("POST"), 200);
    await pull(others, "copyFrom");
    await larder.logged("evicted");
    assert.deepEqual(await statuses(larder, toolchain), toolchain.paths.map(() => 200));
    await upstream.stop();
    await pull([toolchain], "realise");
    assert.ok(others.some(({ paths }) => paths.every((path) => !isStored(larder, path))));

    await upstream.start();
    assert.equal(await pinned("DELETE"), 200);
    for (let round = 0; round < ROUNDS_MAX && hasAny(larder, toolchain); round++) {
      await pull(others, "copyFrom");
    }
    await upstream.stop();
    assert.deepEqual(await statuses(larder, toolchain), toolchain.paths.map(() => 404));
    assert.ok(!hasAny(larder, toolchain));

    const { most, samples } = await sampled.stop();
    assert.ok(samples >= 20, `${samples} samples`);
    assert.ok(most <= LIMIT_BYTES, `${most} bytes on disk, at most ${LIMIT_BYTES}`);
    assert.ok(most > LIMIT_BYTES / 2, "the limit is made use of");
    await eventually("the count is that of the stored files", () => {
      return accountsOf(larder.storage).countedBytes === narBytesIn(larder.storage);
    });

    /** Several clients, each with a store of its own for each closure. */
    async function pull(closures: readonly Closure[], how: "copyFrom" | "realise"): Promise<void> {
      const waiting = [...closures];
      const work = async () => {
        for (let closure = waiting.shift(); closure !== undefined; closure = waiting.shift()) {
          using client = new NixClient();
          await client[how](closure.top, source);
          assert.deepEqual(await client.closureOf(closure.top), closure.paths);
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, work));
    }

    async function pinned(method: "POST" | "DELETE"): Promise<number> {
      const response = await fetch(`${larder.url}/pin/${hashOf(toolchain.top)}.narinfo`, {
        method,
      });
      await response.body?.cancel();
      return response.status;
    }
  },
);

/** Of the narinfos of a closure. */
async function statuses(larder: LarderProcess, { paths }: Closure): Promise<readonly number[]> {
  return await Promise.all(paths.map(async (path) => {
    const response = await fetch(`${larder.url}/${hashOf(path)}.narinfo`);
    await response.body?.cancel();
    return response.status;
  }));
}

function hasAny(larder: LarderProcess, { paths }: Closure): boolean {
  return paths.some((path) => isStored(larder, path));
}

function isStored({ storage }: LarderProcess, path: string): boolean {
  return accountsOf(storage).narinfos.has(hashOf(path));
}

function hashOf(path: string): string {
  return hashOfBaseName(parseStorePath(path));
}
