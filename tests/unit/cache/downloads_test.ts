import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { NarFetcher } from "../../../src/cache/fetch/nar_fetcher.ts";
import type { NarMeasure } from "../../../src/cache/verify/nar_verifier.ts";
import type { WorkLeases } from "../../../src/locks/work_leases.ts";
import {
  BYTES,
  DIGEST,
  downloadsOver,
  ending,
  know,
  MEASURED,
  NAR,
  PACKED,
  UPSTREAMS,
} from "../../support/downloads_scene.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("downloads: one whose Worker cannot be reached fails, and is over", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  let begun = 0;
  const fetcher: NarFetcher = {
    begin() {
      begun++;
      throw new Error("no thread can be started");
    },
  };
  const downloads = downloadsOver({ stocked, folder, fetcher });
  for (const count of [1, 2]) {
    const { download, joined } = downloads.join(narOf("a"), "request");
    assert.equal(joined, false);
    await assert.rejects(download.readable(0), /no thread can be started/);
    await downloads.idle();
    assert.deepEqual([begun, downloads.count], [count, 0]);
  }
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
});

Deno.test("downloads: of two sources that end one file the first one's is kept", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  const sources = UPSTREAMS.map((upstream) => ({ upstream, location: "nar/x" }));
  const { row } = put(hash("a"), []);
  await stocked.metadata.apply([
    { ...put(hash("a"), []), row: { ...row, narName: NAR.name }, nar: NAR, sources },
  ]);
  const lines: string[] = [];
  const publishing = Promise.withResolvers<void>();
  const fetcher = endingTwice(publishing.promise);

  const downloads = downloadsOver({
    ...{ stocked, folder, fetcher, upstreams: UPSTREAMS },
    logged: (line) => lines.push(line),
    publishing: publishing.resolve,
  });
  const { download } = downloads.join(NAR, "request");
  await downloads.idle();

  assert.deepEqual([download.state, lines], [{ state: "kept", fileSize: BYTES.length }, []]);
});

/** The second source is asked because the first is late, and finds the file whole in the end. */
function endingTwice(publishing: Promise<void>): NarFetcher {
  return {
    begin(order, listener) {
      const secondAsked = Promise.withResolvers<void>();
      let asked = 0;
      const end = {
        type: "end",
        fileSize: BYTES.length,
        digest: DIGEST,
        maybeShort: false,
      } as const;
      return {
        from: async (_source, taken) => {
          if (++asked === 2) {
            secondAsked.resolve();
            await publishing;
            return end;
          }
          await secondAsked.promise;
          taken?.();
          Deno.writeFileSync(order.path, BYTES);
          listener.progress({ type: "opened", fileSize: BYTES.length });
          listener.progress({ type: "bytes", received: BYTES.length });
          return end;
        },
        [Symbol.dispose]() {},
      };
    },
  };
}

Deno.test("downloads: a whole file is in the backlog until its NAR is verified", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  await know(stocked, PACKED);
  const checked = Promise.withResolvers<NarMeasure>();
  const downloads = downloadsOver({
    ...{ stocked, folder, fetcher: ending(), upstreams: UPSTREAMS, measure: checked.promise },
  });
  assert.deepEqual(downloads.backlog(), { files: 0, bytes: 0, oldestMs: 0 });

  const { download } = downloads.join(PACKED, "request");
  await download.readable(BYTES.length - 1);
  const { files, bytes, oldestMs } = downloads.backlog();
  assert.deepEqual([files, bytes, oldestMs >= 0], [1, BYTES.length, true]);

  checked.resolve(MEASURED);
  await downloads.idle();
  assert.equal(download.state.state, "kept");
  assert.deepEqual(downloads.backlog(), { files: 0, bytes: 0, oldestMs: 0 });
});

/** Whole files of a process that another one takes over. */
const LEFT: Readonly<Record<string, { bytes: Uint8Array; measure: NarMeasure; kept: boolean }>> = {
  "with the right bytes is kept": { bytes: BYTES, measure: MEASURED, kept: true },
  "that was cut goes": { bytes: BYTES.subarray(1), measure: MEASURED, kept: false },
  "with other bytes goes": { bytes: BYTES.map(() => 1), measure: MEASURED, kept: false },
  "with another NAR goes": {
    bytes: BYTES,
    measure: { ...MEASURED, digest: createHash("sha256").digest() },
    kept: false,
  },
};

for (const [name, { bytes, measure, kept }] of Object.entries(LEFT)) {
  Deno.test(`downloads: a received file ${name}, with no upstream request`, async () => {
    using folder = tempFolder();
    await using stocked = await StockedSpace.open(Infinity);
    await know(stocked, PACKED);
    const fetcher: NarFetcher = { begin: () => assert.fail("an upstream is asked") };
    const downloads = downloadsOver({
      ...{ stocked, folder, fetcher, measure: Promise.resolve(measure) },
    });
    const path = `${folder.path}/${PACKED.name}.x1y2.received`;
    Deno.writeFileSync(path, bytes);

    await downloads.resume([path]);

    assert.equal((await stocked.metadata.findNar(PACKED.name))?.kept !== undefined, kept);
    assert.deepEqual([...Deno.readDirSync(folder.path)], []);
    assert.equal(downloads.count, 0);
    // Of a file that is kept by now, or of no NAR, nothing is left either.
    for (const again of [path, `${folder.path}/x.received`]) {
      if (again === path && !kept) continue;
      Deno.writeFileSync(again, bytes);
      await downloads.resume([again]);
      assert.deepEqual([...Deno.readDirSync(folder.path)], []);
    }
  });
}

Deno.test("downloads: a received file that a stop interrupts stays for the next one", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  await know(stocked, PACKED);
  const checked = Promise.withResolvers<NarMeasure>();
  const logged: string[] = [];
  const downloads = downloadsOver({
    ...{ stocked, folder, fetcher: ending(), upstreams: UPSTREAMS, measure: checked.promise },
    logged: (line) => logged.push(line),
  });
  const { download } = downloads.join(PACKED, "request");
  await download.readable(BYTES.length - 1);

  downloads.stopping();
  checked.reject(new Error("the thread has ended"));
  await downloads.idle();

  const [left, ...more] = [...Deno.readDirSync(folder.path)].map(({ name }) => name);
  assert.match(left ?? "", /\.received$/);
  assert.deepEqual(more, []);
  assert.deepEqual(logged, [], "a stop is no outage of the storage");
});

/** Each lease is ours unless the work is done. */
const LEASES: Pick<WorkLeases, "nar"> = {
  nar: async (_, isDone) => ({
    kind: await isDone() ? "done" : "ours",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
};

for (const isReplaced of [false, true]) {
  const outcome = isReplaced ? "not fetched where a member has replaced it" : "fetched again";
  Deno.test(`downloads: a stored file that cannot be served is ${outcome}`, async () => {
    using folder = tempFolder();
    await using stocked = await StockedSpace.open(Infinity);
    const { metadata } = stocked;
    const { name } = narOf(hash("a"));
    await metadata.apply([put(hash("a"), []), ...keep(fileOf(name))]);
    const damaged = await metadata.findNar(name);
    assert.ok(damaged?.kept);
    if (isReplaced) await metadata.apply(keep(fileOf(name)));
    let begun = 0;
    const fetcher: NarFetcher = {
      begin() {
        begun++;
        throw new Error("no thread can be started");
      },
    };
    const downloads = downloadsOver({ stocked, folder, fetcher, leases: LEASES });

    downloads.join(damaged, "request");
    await downloads.idle();

    assert.equal(begun, isReplaced ? 0 : 1);
  });
}
