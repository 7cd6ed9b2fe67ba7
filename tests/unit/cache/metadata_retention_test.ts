import assert from "node:assert/strict";
import { MetadataRetention } from "../../../src/cache/metadata_retention.ts";
import { Touches } from "../../../src/cache/touches.ts";
import type { RowSweeper } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";

const DAY_MS = 24 * 3_600_000;
const MINUTE_MS = 60_000;
const [asked, unasked] = [hash("asked"), hash("unasked")];

Deno.test("retention: a client between its narinfo and its NAR loses no row", async () => {
  await using scene = new Scene();
  await scene.metadata.apply([put(asked, [], 0), put(unasked, [], 0)]);
  scene.nowMs = 180 * DAY_MS;
  scene.touches.narinfo(asked);
  await scene.retention.run();
  scene.nowMs += MINUTE_MS;
  await scene.retention.run();
  assert.ok(await scene.metadata.findNarinfo(asked));
  assert.ok(await scene.metadata.findNar(narOf(asked).name));
  assert.equal(await scene.metadata.findNarinfo(unasked), undefined);
});

Deno.test("retention: a narinfo that another process just served leads to its NAR", async () => {
  await using scene = new Scene();
  await scene.metadata.apply([put(asked, [], 0)]);
  scene.nowMs = 180 * DAY_MS;
  await scene.retention.run();
  assert.equal(await scene.metadata.findNarinfo(asked), undefined);
  scene.nowMs += MINUTE_MS;
  await scene.retention.run();
  assert.ok(await scene.metadata.findNar(narOf(asked).name));
  // The client asks for it, so that it stays for another 180 days.
  scene.touches.nar(narOf(asked).name);
  scene.nowMs += 179 * DAY_MS;
  await scene.retention.run();
  assert.ok(await scene.metadata.findNar(narOf(asked).name));
  scene.nowMs += 2 * DAY_MS;
  await scene.retention.run();
  assert.equal(await scene.metadata.findNar(narOf(asked).name), undefined);
});

Deno.test("retention: a NAR in flight keeps its rows", async () => {
  await using scene = new Scene({ busy: new Set([narOf(asked).name]) });
  await scene.metadata.apply([put(asked, [], 0), put(unasked, [], 0)]);
  scene.nowMs = 181 * DAY_MS;
  await scene.retention.run();
  assert.ok(await scene.metadata.findNarinfo(asked));
  assert.equal(await scene.metadata.findNarinfo(unasked), undefined);
});

Deno.test("retention: a thousand rows go in small batches, and in one log line", async () => {
  await using scene = new Scene();
  const paths = Array.from({ length: 1_000 }, (_, index) => hash(`path ${index}`));
  await scene.metadata.apply(paths.map((path) => put(path, [], 0)));
  scene.nowMs = 180 * DAY_MS;
  await scene.retention.run();
  assert.ok(Math.max(...scene.batches) <= 32);
  assert.deepEqual(scene.lines, [["unused metadata removed", 1_000, 0]]);
  await scene.retention.run();
  assert.equal(scene.lines.length, 1);
});

Deno.test("retention: nothing goes before the paths that pins protect are known", async () => {
  await using scene = new Scene({ unsettled: 3 });
  await scene.metadata.apply([put(unasked, [], 0)]);
  scene.nowMs = 180 * DAY_MS;
  await scene.retention.run();
  assert.equal(scene.protections, 3);
  assert.equal(await scene.metadata.findNarinfo(unasked), undefined);
});

Deno.test("retention: a database that fails is a warning, and tried again later", async () => {
  await using scene = new Scene({ failures: 1 });
  await scene.metadata.apply([put(unasked, [], 0)]);
  scene.nowMs = 180 * DAY_MS;
  await scene.retention.run();
  await scene.retention.run();
  assert.deepEqual(scene.lines, [
    ["unused metadata not removed", 0, 0],
    ["unused metadata removed", 1, 0],
  ]);
});

Deno.test("retention: it ends a run after its batch", async () => {
  await using scene = new Scene();
  const paths = Array.from({ length: 200 }, (_, index) => hash(`path ${index}`));
  await scene.metadata.apply(paths.map((path) => put(path, [], 0)));
  scene.nowMs = 180 * DAY_MS;
  const run = scene.retention.run();
  await scene.retention[Symbol.asyncDispose]();
  await run;
  assert.ok(scene.batches.length <= 1);
});

Deno.test("retention: a database above its share loses rows early, the oldest first", async () => {
  await using scene = new Scene();
  const ages = [100, 20, 2, 0.2, 0.0001];
  const paths = ages.map((days) => hash(`${days} days`));
  const nowMs = 170 * DAY_MS;
  await scene.metadata.apply(
    paths.map((path, at) => put(path, [], nowMs - (ages[at] ?? 0) * DAY_MS)),
  );
  const [pinned, kept] = [hash("pinned"), hash("kept")];
  await scene.metadata.apply([
    ...[put(pinned, [], 0), put(kept, [], 0), ...keep(fileOf(narOf(kept).name))],
    { kind: "put-pin", pin: { storePathHash: pinned, pinnedAtMs: 1 } },
  ]);
  scene.nowMs = nowMs;
  const left = async () => {
    const rows = await Promise.all(paths.map((path) => scene.metadata.findNarinfo(path)));
    return rows.map((row) => row !== undefined);
  };
  await scene.retention.shrink();
  assert.deepEqual(await left(), [true, true, true, true, true], "it is small enough");

  scene.nowMs += 10 * MINUTE_MS;
  // Small enough once the two oldest have gone.
  scene.excessBytes = () => scene.batches.reduce((sum, count) => sum + count, 0) >= 2 ? 0 : 1;
  await scene.retention.shrink();
  assert.deepEqual(await left(), [false, false, true, true, true]);

  scene.nowMs += 10 * MINUTE_MS;
  scene.excessBytes = () => 1;
  await scene.retention.shrink();
  assert.deepEqual(await left(), [false, false, false, false, false]);
  for (const path of [pinned, kept]) assert.ok(await scene.metadata.findNarinfo(path));
});

interface SceneOptions {
  readonly busy?: ReadonlySet<ReturnType<typeof narOf>["name"]>;
  /** So many batches find that pins are not settled. */
  readonly unsettled?: number;
  /** So many batches fail. */
  readonly failures?: number;
}

/** Retention of 180 days over a store in memory, by a clock of its own. */
class Scene implements AsyncDisposable {
  readonly metadata = new MemoryMetadataStore();
  readonly lines: unknown[][] = [];
  /** Narinfos that went, batch by batch. */
  readonly batches: number[] = [];
  readonly touches: Touches;
  readonly retention: MetadataRetention;
  nowMs = 0;
  protections = 0;
  excessBytes = (): number => 0;

  constructor({ busy = new Set(), unsettled = 0, failures = 0 }: SceneOptions = {}) {
    const log = createLogger("debug", {
      write: (line) => {
        const { msg, narinfos, nars } = JSON.parse(line);
        this.lines.push([msg, narinfos, nars]);
      },
    });
    const nowMs = () => this.nowMs;
    this.touches = new Touches({ metadata: this.metadata, nowMs, log });
    let left = { unsettled, failures };
    const sweeper: RowSweeper = {
      sweepRows: async (order) => {
        if (left.failures > 0) {
          left = { ...left, failures: left.failures - 1 };
          throw new Error("the disk is full");
        }
        if (left.unsettled > 0) {
          left = { ...left, unsettled: left.unsettled - 1 };
          return { narinfos: [], nars: [], paths: 0, settled: false, next: "" };
        }
        const swept = await this.metadata.sweepRows(order);
        this.batches.push(swept.narinfos.length);
        return swept;
      },
    };
    this.retention = new MetadataRetention({
      metadata: sweeper,
      touches: this.touches,
      reads: { names: () => busy },
      protect: async () => void this.protections++,
      retentionMs: 180 * DAY_MS,
      excessBytes: async () => this.excessBytes(),
      nowMs,
      log,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.retention[Symbol.asyncDispose]();
    await this.touches[Symbol.asyncDispose]();
  }
}
