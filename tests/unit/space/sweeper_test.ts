import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { openNars } from "../../../src/app/back_ends/nar_back_end.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { Sweeper } from "../../../src/space/sweeper.ts";
import { createLogger, SILENT } from "../../../src/telemetry/logger.ts";
import { fileOf, narOf } from "../../support/metadata_rows.ts";
import { PlayedTime } from "../../support/played_time.ts";

const GRACE_MS = 1_000;
const S3 = {
  ...{ bucket: "nars", endpoint: "http://127.0.0.1:1", region: "us-east-1" },
  ...{ credentials: { accessKeyId: "a", secretAccessKey: "b" }, forcePathStyle: true },
};

Deno.test("sweeper: a marked object of S3 stays for one second, then it is gone", async () => {
  await using bucket = await openNars({ kind: "s3", s3: S3 });
  using time = new PlayedTime();
  const steps: string[] = [];
  const sweeper = new Sweeper({
    metadata: {
      apply: async (changes: readonly Change[]) =>
        void steps.push(...changes.map(({ kind }) => kind)),
      pendingFiles: async () => [],
    },
    nars: {
      remove: async () => {
        steps.push("removed");
        return true;
      },
    },
    owner: "we",
    graceMs: bucket.graceMs,
    log: createLogger("error", { write: () => undefined }),
  });

  const swept = sweeper.markAndSweep(fileOf(narOf("a").name));
  await time.advance(GRACE_MS - 1);
  assert.deepEqual(steps, ["nar-marked"]);
  await time.advance(1);
  await time.settled();
  assert.deepEqual(steps, ["nar-marked", "removed", "nar-gone"]);
  await swept;
});

for (const why of [undefined, "lost"] as const) {
  Deno.test(`sweeper: a ${why ?? "kept"} file is removed once its mark is written`, async () => {
    const steps: unknown[] = [];
    const writing = Promise.withResolvers<void>();
    const sweeper = new Sweeper({
      metadata: {
        async apply(changes: readonly Change[]) {
          await writing.promise;
          for (const one of changes) {
            steps.push(one.kind === "nar-marked" ? [one.kind, one.isLost] : one.kind);
          }
        },
        pendingFiles: async () => [],
      },
      nars: { remove: async () => steps.push("removed") > 0 },
      owner: "we",
      log: SILENT,
    });
    const swept = sweeper.markAndSweep(fileOf(narOf("a").name), why);
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(steps, []);
    writing.resolve();
    await swept;
    assert.deepEqual(steps, [["nar-marked", why === "lost"], "removed", "nar-gone"]);
  });
}

Deno.test("sweeper: a store is away only as long as a marked object is left", async () => {
  const sweeper = new Sweeper({
    metadata: { apply: async () => undefined, pendingFiles: async () => [] },
    nars: { remove: () => Promise.reject(new Failure("unavailable", "away")) },
    owner: "we",
    log: SILENT,
  });
  const { at } = fileOf(narOf("a").name);
  await sweeper.sweep([{ at, owner: "we", fileSize: 0 }]);
  assert.equal(sweeper.isStoreUnavailable, false, "an object without a mark");
  await sweeper.sweep([{ at, owner: "we", fileSize: 1 }]);
  assert.equal(sweeper.isStoreUnavailable, true);
  await sweeper.sweepOwn();
  assert.equal(sweeper.isStoreUnavailable, false, "another process has removed it");
});

Deno.test("sweeper: the log names an outage of the store once, and then its end", async () => {
  const lines: string[] = [];
  let isStoreUnavailable = true;
  const log = createLogger("info", {
    write: (line) => {
      const { level, msg } = JSON.parse(line);
      lines.push(`${level}: ${msg}`);
    },
  });
  const sweeper = new Sweeper({
    metadata: { apply: async () => undefined, pendingFiles: async () => [] },
    nars: {
      remove: () => isStoreUnavailable ? Promise.reject(new Error("away")) : Promise.resolve(true),
    },
    owner: "we",
    log,
  });
  const marked = ["a", "b", "c"].map((letter) => {
    return { at: fileOf(narOf(letter).name).at, owner: "we", fileSize: 1 };
  });

  for (let times = 0; times < 3; times++) assert.deepEqual(await sweeper.sweep(marked), []);
  isStoreUnavailable = false;
  assert.equal((await sweeper.sweep(marked.slice(1))).length, 2);
  assert.deepEqual(lines, ["error: nar not removed"], "one is left");
  await sweeper.sweep(marked.slice(0, 1));

  assert.deepEqual(lines, ["error: nar not removed", "info: nars are removed again"]);
});

Deno.test("sweeper: a store that is away is asked for a few of the marked objects only", async () => {
  let asked = 0;
  const marked = Array.from({ length: 1_000 }, () => {
    return { at: fileOf(narOf("a").name).at, owner: "we", fileSize: 1 };
  });
  const sweeper = new Sweeper({
    metadata: { apply: async () => undefined, pendingFiles: async () => marked },
    nars: {
      remove: () => {
        asked++;
        return Promise.reject(new Failure("unavailable", "away"));
      },
    },
    owner: "we",
    log: createLogger("error", { write: () => undefined }),
  });
  await sweeper.sweepOwn();
  assert.ok(asked <= 100, `${asked} calls`);
  asked = 0;
  await sweeper.sweepOwn();
  assert.equal(asked, 1);
});

Deno.test("sweeper: what is left goes, and what was marked a moment ago waits", async () => {
  const [left, fresh] = ["a", "b"].map((letter) => {
    return { at: fileOf(narOf(letter).name).at, owner: "we", fileSize: 1 };
  });
  assert.ok(left && fresh);
  let pending = [left];
  const removed: string[] = [];
  const sweeper = new Sweeper({
    metadata: { apply: async () => undefined, pendingFiles: async () => pending },
    nars: { remove: async (at) => removed.push(at) > 0 },
    owner: "we",
    log: createLogger("error", { write: () => undefined }),
  });
  await sweeper.sweepLeft();
  assert.deepEqual(removed, []);
  pending = [left, fresh];
  await sweeper.sweepLeft();
  assert.deepEqual(removed, [left.at]);
});
