import assert from "node:assert/strict";
import { HitLooks } from "../../../../src/cache/prefetch/prefetch.ts";
import type { NarinfoRow, NarRecord } from "../../../../src/metadata/metadata_store.ts";
import { hash, narOf, rowOf } from "../../../support/metadata_rows.ts";

const app = rowOf(hash("app"), narOf(hash("app")));
const REQUEST = { requestId: "1", atMs: 0 };

Deno.test("hit looks: of many hits one looks for the NAR, once a minute", async () => {
  const { looks, looked, missing, hit } = scene();
  for (let times = 0; times < 100; times++) hit(app);
  await looks.idle();
  assert.deepEqual([looked.length, missing], [1, [app]]);
  for (const atMs of [0, 59_000]) {
    looks.expire(atMs);
    hit(app);
    await looks.idle();
    assert.equal(looked.length, 1);
  }
  looks.expire(60_000);
  hit(app);
  await looks.idle();
  assert.equal(looked.length, 2);
});

Deno.test("hit looks: a NAR that is here, or unknown, is not missing", async () => {
  for (const found of ["kept", undefined] as const) {
    const { looks, looked, missing, hit } = scene(() => found && ({ kept: {} } as NarRecord));
    hit(app);
    await looks.idle();
    assert.deepEqual([looked.length, missing], [1, []]);
  }
});

Deno.test("hit looks: a failed look ends no other", async () => {
  const { looks, missing, hit } = scene((narName) => {
    if (narName === app.narName) throw new Error("locked");
    return {} as NarRecord;
  });
  const tool = rowOf(hash("tool"), narOf(hash("tool")));
  hit(app);
  hit(tool);
  await looks.idle();
  assert.deepEqual(missing, [tool]);
});

Deno.test("hit looks: at most 10,000 NARs in a period", async () => {
  const { looks, looked, hit } = scene();
  for (let at = 0; at < 10_100; at++) hit({ ...app, narName: `${at}` as NarinfoRow["narName"] });
  await looks.idle();
  assert.equal(looked.length, 10_000);
});

Deno.test("hit looks: a NAR whose narinfo came anew is looked for again", async () => {
  const { looks, looked, hit } = scene();
  looks.settle(app.narName);
  hit(app);
  await looks.idle();
  assert.equal(looked.length, 0);
  looks.unsettle(app.narName);
  hit(app);
  await looks.idle();
  assert.equal(looked.length, 1);
});

/** Looks whose NARs are known and not here, unless `find` says otherwise. */
function scene(find: (narName: string) => NarRecord | undefined = () => ({} as NarRecord)) {
  const looked: string[] = [];
  const missing: NarinfoRow[] = [];
  const looks = new HitLooks({
    metadata: {
      findNar: async (narName) => {
        looked.push(narName);
        return await find(narName);
      },
    },
    missing: (row) => void missing.push(row),
  });
  const hit = (row: NarinfoRow) => {
    if (!looks.knows(row.narName)) looks.look(row, REQUEST);
  };
  return { looks, looked, missing, hit };
}
