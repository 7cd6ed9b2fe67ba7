import assert from "node:assert/strict";
import { FaultProxy } from "../support/fault_proxy.ts";
import { Gate } from "../support/faults.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import type { Row } from "./row.ts";
import type { Scene } from "./scene.ts";

const area = "client";
const HALF = 500_000;

export const CLIENT_ROWS: readonly Row[] = [
  {
    fault: "a client leaves halfway",
    area,
    saw: "left",
    kept: "nar",
    async asks(scene) {
      const request = requestText("GET", (await scene.narinfo()).narPath);
      const { body } = await rawRequest(scene.port, request, { stopAfterBodyBytes: HALF });
      assert.equal(body.length, HALF);
      return "left";
    },
  },
  {
    fault: "the client that began a download leaves, another shares it",
    area,
    saw: "whole",
    kept: "nar",
    async asks(scene) {
      const gate = new Gate();
      scene.upstream.breakNar(gate.fault);
      const narinfo = await scene.narinfo();
      const first = await asked(scene, narinfo.narPath);
      await gate.reached(0);
      const second = scene.request("GET", narinfo.narPath);
      gate.release(HALF);
      await (await first.answer()).reader.read(HALF - 1);
      await first[Symbol.asyncDispose]();
      gate.open();
      return await scene.sightOf(await second, narinfo);
    },
  },
  {
    fault: "a client that reads nothing shares a download with another",
    area,
    saw: "whole",
    kept: "nar",
    narBytes: 20_000_000,
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
      await using proxy = new FaultProxy({ targetPort: scene.port, cutAfterBytes: HALF });
      const { narPath } = await scene.narinfo();
      const { body, complete } = await rawRequest(proxy.port, requestText("GET", narPath));
      assert.ok(!complete && body.length > 0);
      proxy.cutAfterBytes = undefined;
      const range = { Range: `bytes=${body.length}-` };
      const rest = await rawRequest(proxy.port, requestText("GET", narPath, range));
      assert.deepEqual([rest.status, rest.complete], [206, true]);
      assertSameBytes(await new Blob([body, rest.body]).bytes(), await scene.bytes());
      return "rest";
    },
  },
];

async function asked(scene: Scene, path: string): Promise<RawConnection> {
  const connection = await RawConnection.open(scene.port);
  await connection.send(requestText("GET", path));
  return connection;
}
