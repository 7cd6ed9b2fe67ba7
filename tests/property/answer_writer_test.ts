import assert from "node:assert/strict";
import fc from "fast-check";
import type { Bytes } from "../../src/base/bytes.ts";
import { Answer } from "../../src/http/message/message.ts";
import { Activity } from "../../src/http/server/connection.ts";
import { AnswerWriter, RunningWrites } from "../../src/http/server/answer_writer.ts";
import { checkProperty } from "../support/property.ts";

const BODY = Uint8Array.from({ length: 300_000 }, (_, at) => at * 7 + (at >> 8));

const takes = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 30 });

checkProperty(
  "answer writer: however a client takes an answer, it gets each byte once",
  fc.asyncProperty(fc.nat(BODY.length), takes, fc.boolean(), async (length, client, isShort) => {
    const got: Bytes[] = [];
    let turn = 0;
    const running = new RunningWrites(isShort ? 0 : undefined);
    const writer = new AnswerWriter(
      {
        async write(bytes) {
          const taken = bytes.slice(0, Math.max(client[turn++ % client.length] ?? 1, 1_000));
          got.push(taken);
          return taken.length;
        },
      },
      new Activity({ count: 0 }),
      running,
    );
    const body = BODY.subarray(0, length);
    const sending = { isHead: false, keepsAlive: true, isOld: false, date: "now" };
    await writer.send(new Answer(body, 200, {}), sending);
    const all = await new Blob(got).bytes();
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n` +
      "x-content-type-options: nosniff\r\ndate: now\r\n\r\n";
    assert.deepEqual(all, await new Blob([head, body]).bytes());
    assert.equal(writer.unsentBytes, 0);
  }),
  { runs: 200 },
);
