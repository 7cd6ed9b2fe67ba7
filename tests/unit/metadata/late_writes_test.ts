import assert from "node:assert/strict";
import { LateWrites, type UpstreamChange } from "../../../src/metadata/hot_metadata_store.ts";
import { NarNameTaken, Outdated } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { hash, narOf, put, source } from "../../support/metadata_rows.ts";

const [a, b] = [hash("a"), hash("b")];

Deno.test("LateWrites: a late change can be read until it has landed", async () => {
  const scene = new Scene();
  const change = put(a, []);
  await scene.late.write([change]);
  const { late } = scene;
  const { name } = change.nar;
  assert.deepEqual(late.narinfo(a), change.row);
  assert.deepEqual(late.nar(name), change.nar);
  assert.deepEqual(late.sourcesOf(name), [source]);
  assert.deepEqual(late.narinfosOf(name), [a]);

  await scene.land();

  assert.equal(late.narinfo(a), undefined);
  assert.equal(late.nar(name), undefined);
  assert.deepEqual([...late.sourcesOf(name), ...late.narinfosOf(name)], []);
  assert.deepEqual(scene.landed, [[change]]);
});

Deno.test("LateWrites: landed() waits for a late change, and only until it lands", async () => {
  const scene = new Scene();
  const { late } = scene;
  assert.equal(late.landed(a, 60_000), undefined);
  await late.write([put(a, [])]);
  assert.equal(late.landed(b, 60_000), undefined);
  await late.landed(a, 1);
  let hasLanded = false;
  const landed = late.landed(a, 60_000)?.then(() => hasLanded = true);
  await late.write([put(b, [])]);
  assert.equal(hasLanded, false);

  await scene.land();

  assert.equal(await landed, true);
  assert.equal(late.landed(a, 60_000), undefined);
});

Deno.test("LateWrites: of two rows of a path the later one counts, whichever lands", async () => {
  const scene = new Scene();
  const before = put(a, []);
  const after = { ...before, row: { ...before.row, body: "other" } };
  await Promise.all([scene.late.write([before]), scene.late.write([after])]);
  assert.equal(scene.late.narinfo(a)?.body, "other");
  await scene.land(1);
  assert.equal(scene.late.narinfo(a)?.body, "other");
});

Deno.test("LateWrites: a NAR name that stands for another NAR is refused at once", async () => {
  const scene = new Scene();
  await scene.late.write([put(a, [])]);
  const liar = { ...put(b, []), nar: { ...put(a, []).nar, narSize: 1 } };
  await assert.rejects(scene.late.write([liar]), NarNameTaken);
  scene.stored = narOf("stored");
  const other = { ...put(b, []), nar: { ...narOf("stored"), narSize: 1 } };
  await assert.rejects(scene.late.write([other]), NarNameTaken);
  assert.equal(scene.late.narinfo(b), undefined);
});

Deno.test("LateWrites: a change that the database refuses is logged, and gone", async () => {
  const scene = new Scene();
  await scene.late.write([put(a, [])]);
  await scene.land(1, new Error("disk full"));
  assert.equal(scene.late.narinfo(a), undefined);
  assert.ok(scene.log.some(({ level, msg }) => level === "error" && msg === "narinfo not kept"));
});

Deno.test("LateWrites: a narinfo that an upload has outrun is gone, and no error", async () => {
  const scene = new Scene();
  await scene.late.write([put(a, [])]);
  await scene.land(1, new Outdated(a));
  assert.equal(scene.late.narinfo(a), undefined);
  assert.deepEqual(scene.log.filter(({ level }) => level === "error"), []);
});

Deno.test("LateWrites: memory is not filled while a database stays locked", async () => {
  const scene = new Scene();
  const change = put(a, []);
  await scene.late.write([change]);
  await Promise.all(Array.from({ length: 9_999 }, () => scene.late.write([change])));
  await assert.rejects(scene.late.write([put(b, [])]), /too many wait/);
  assert.equal(scene.log.filter(({ level }) => level === "warn").length, 1);
});

Deno.test("LateWrites: large narinfos fill it sooner, and landed ones make room", async () => {
  const scene = new Scene();
  const large = () => {
    const change = put(a, []);
    return { ...change, row: { ...change.row, body: "x".repeat(16 << 20) } };
  };
  for (let count = 0; count < 4; count++) await scene.late.write([large()]);
  await assert.rejects(scene.late.write([put(b, [])]), /too many wait/);
  await scene.land(1);
  await scene.late.write([put(b, [])]);
  assert.ok(scene.late.narinfo(b));
});

/** A database that takes nothing until the test lets it. */
class Scene {
  readonly log: { readonly level: string; readonly msg: string }[] = [];
  readonly landed: (readonly UpstreamChange[])[] = [];
  readonly #waiting: { resolve(): void; reject(reason: unknown): void }[] = [];
  stored: ReturnType<typeof narOf> | undefined;
  readonly late = new LateWrites({
    inner: {
      apply: () => {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        this.#waiting.push({ resolve, reject });
        return promise;
      },
      findNar: (name) => Promise.resolve(this.stored?.name === name ? this.stored : undefined),
    },
    landed: (changes) => void this.landed.push(changes),
    log: createLogger("info", { write: (line) => void this.log.push(JSON.parse(line)) }),
  });

  /** The first `count` writes land, or fail. */
  async land(count = Infinity, error?: Error): Promise<void> {
    for (const { resolve, reject } of this.#waiting.splice(0, count)) {
      if (error === undefined) resolve();
      else reject(error);
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
}
