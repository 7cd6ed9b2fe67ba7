import assert from "node:assert/strict";
import { type RawAnswer, type RawConnection, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { AS_WRITER, type Push, pushOf } from "../support/uploading.ts";
import type { Row } from "./row.ts";
import type { RowScene } from "./row_scene.ts";

/** Longest silence of a client in a body, and the next sweep that finds it. */
const STOPPED_MS = 31_000;
const LOCKED_MS = 2_000;

const pushed = (name: string, size: number, seed: number) =>
  pushOf(makeStoreObject({ name, size, seed }), { compression: "none" });
const small = await pushed("small", 600_000, 0);
const other = await pushed("other", 600_000, 1);
const large = await pushed("large", 12_000_000, 2);

const area = "upload";
const takes = ({ object }: Push) => ({ upstreams: [], objects: [object], takesUploads: true });
const isPushed = (scene: RowScene) => push(scene, small);

export const UPLOAD_ROWS: readonly Row[] = [
  {
    fault: "pins fill the size limit while a NAR is uploaded",
    area,
    saw: "later",
    kept: "nothing",
    scene: { ...takes(other), limitBytes: 1_000_000 },
    async asks(scene) {
      await push(scene, small);
      assert.equal((await pin(scene, "POST")).status, 200);
      await using connection = await begun(scene, other, { "Expect": "100-continue" });
      const { status, interim } = await connection.answer();
      assert.deepEqual([status, interim], [507, []]);
      return "later";
    },
    async mended(scene) {
      assert.equal((await pin(scene, "DELETE")).status, 200);
      await push(scene, other);
    },
  },
  {
    fault: "two clients upload the same path at once",
    area,
    saw: "stored",
    kept: "nar",
    scene: takes(large),
    async asks(scene) {
      await Promise.all([push(scene, large), push(scene, large)]);
      return "stored";
    },
    mended: (scene) => isServed(scene, large),
  },
  {
    fault: "a client stops for a minute in the middle of an upload",
    area,
    saw: "timeout",
    kept: "nothing",
    scene: takes(small),
    afterMs: STOPPED_MS,
    async asks(scene) {
      await using connection = await half(scene, small);
      const { status, headers } = await connection.answer();
      assert.deepEqual([status, headers.get("connection")], [408, "close"]);
      return "timeout";
    },
    mended: isPushed,
  },
  {
    fault: "a client leaves in the middle of an upload",
    area,
    saw: "left",
    kept: "nothing",
    scene: takes(small),
    async asks(scene) {
      await (await half(scene, small))[Symbol.asyncDispose]();
      return "left";
    },
    mended: isPushed,
  },
  {
    fault: "another process locks the database for two seconds during an upload",
    area,
    saw: "stored",
    kept: "nar",
    scene: takes(small),
    isLocked: true,
    async asks(scene) {
      const free = scene.lock();
      const freed = scene.scene.pause(LOCKED_MS).then(free);
      await push(scene, small);
      await freed;
      return "stored";
    },
    mended: (scene) => isServed(scene, small),
  },
];

/** Uploads NAR and narinfo, both of which are stored. */
async function push(scene: RowScene, one: Push): Promise<void> {
  const narinfo = new TextEncoder().encode(one.narinfo);
  for (const [path, body] of [[one.narPath, one.file.bytes], [one.narinfoPath, narinfo]] as const) {
    await using connection = await begun(scene, { narPath: path, file: { bytes: body } });
    await connection.send(body);
    const { status } = await connection.answer();
    assert.ok(status === 200 || status === 201, `${path} is ${status}`);
  }
  await isServed(scene, one);
}

/** Sends the head of an upload. */
async function begun(
  { scene }: RowScene,
  { narPath, file: { bytes } }: Pick<Push, "narPath"> & {
    readonly file: Pick<Push["file"], "bytes">;
  },
  more: Readonly<Record<string, string>> = {},
): Promise<RawConnection> {
  const connection = scene.connect();
  const head = {
    "Connection": "keep-alive",
    "Content-Length": String(bytes.length),
    "Authorization": AS_WRITER.authorization,
    ...more,
  };
  await connection.send(requestText("PUT", narPath, head));
  return connection;
}

/** Sends half of a NAR, and resolves when larder writes it. */
async function half(scene: RowScene, one: Push): Promise<RawConnection> {
  const connection = await begun(scene, one);
  const { bytes } = one.file;
  await connection.send(bytes.subarray(0, bytes.length / 2));
  await scene.until(() => scene.growingBytes > 0);
  return connection;
}

function pin(scene: RowScene, method: "POST" | "DELETE"): Promise<RawAnswer> {
  const path = `/pin/${small.object.storePathHash}.narinfo`;
  return scene.request(method, path, { "Authorization": AS_WRITER.authorization });
}

async function isServed(scene: RowScene, { object }: Push): Promise<void> {
  assert.equal(await scene.pull(object), "whole");
}
