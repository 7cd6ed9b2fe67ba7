import assert from "node:assert/strict";
import fc from "fast-check";
import type { Bytes } from "../../src/base/bytes.ts";
import { Activity } from "../../src/http/server/activity.ts";
import { AnswerWriter, RunningWrites } from "../../src/http/server/answer_writer.ts";
import { checkProperty } from "../support/property.ts";

const BODY = Uint8Array.from({ length: 300_000 }, (_, at) => at * 7 + (at >> 8));
const HEAD = "head";

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
    await writer.together(HEAD, BODY.subarray(0, length));
    const all = await new Blob(got).bytes();
    assert.deepEqual(all, await new Blob([HEAD, BODY.subarray(0, length)]).bytes());
    assert.equal(writer.heldBytes, 0);
  }),
  { runs: 200 },
);
