import assert from "node:assert/strict";
import { atRate } from "../simulation/scene.ts";
import { type RawConnection, rawExchange, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Row } from "./row.ts";
import type { RowScene } from "./row_scene.ts";

const area = "client";
const HALF = 500_000;

const large = makeStoreObject({ name: "large-1.0", size: 20_000_000 });

export const CLIENT_ROWS: readonly Row[] = [
  {
    fault: "a client leaves halfway",
    area,
    saw: "left",
    kept: "nar",
    async asks(scene) {
      assert.equal((await halfOf(scene)).length, HALF);
      return "left";
    },
  },
  {
    fault: "the client that began a download leaves, another shares it",
    area,
    saw: "whole",
    kept: "nar",
    breaks: (scene) => scene.behave({ nar: atRate(HALF) }),
    async asks(scene) {
      const narinfo = await scene.narinfo();
      const first = await asked(scene, narinfo.narPath);
      const { reader } = await first.answer();
      const second = scene.request("GET", narinfo.narPath);
      await reader.read(HALF - 1);
      await first[Symbol.asyncDispose]();
      return await scene.sightOf(await second, narinfo);
    },
  },
  {
    fault: "a client that reads nothing shares a download with another",
    area,
    saw: "whole",
    kept: "nar",
    scene: { objects: [large] },
    async asks(scene) {
      const narinfo = await scene.narinfo();
      await using slow = await asked(scene, narinfo.narPath);
      const sight = await scene.sightOf(await scene.request("GET", narinfo.narPath), narinfo);
      await scene.quiet();
      const { status, headers, interim, reader } = await slow.answer();
      const body = await reader.read();
      const late = { status, headers, interim, body, complete: reader.isComplete };
      assert.equal(await scene.sightOf(late, narinfo), "whole", "the bytes that it reads then");
      return sight;
    },
  },
  {
    fault: "the connection to the client is cut halfway, and it asks for the rest",
    area,
    saw: "rest",
    kept: "nar",
    async asks(scene) {
      const half = await halfOf(scene);
      const { narPath } = await scene.narinfo();
      const rest = await scene.request("GET", narPath, { Range: `bytes=${half.length}-` });
      assert.deepEqual([rest.status, rest.complete], [206, true]);
      assertSameBytes(await new Blob([half, rest.body]).bytes(), scene.object.nar);
      return "rest";
    },
  },
];

/** The half of a NAR, behind which its client leaves. */
async function halfOf(scene: RowScene) {
  const request = requestText("GET", (await scene.narinfo()).narPath);
  return (await rawExchange(scene.scene.connect(), request, { stopAfterBodyBytes: HALF })).body;
}

async function asked({ scene }: RowScene, path: string): Promise<RawConnection> {
  const connection = scene.connect();
  await connection.send(requestText("GET", path));
  return connection;
}
