import assert from "node:assert/strict";
import type { NarName } from "../../../src/nix/nar_name.ts";
import { ActiveReads } from "../../../src/space/active_reads.ts";

const NAR = `${"1".repeat(52)}.nar.xz` as NarName;
const OTHER = `${"0".repeat(52)}.nar` as NarName;

Deno.test("active reads: a send is listed with its client, and spared, until it ends", () => {
  const reads = new ActiveReads();
  let ended = 0;
  reads.whenEnded(() => ended++);
  const endRead = reads.begin(OTHER);
  const ends = ["::1", "::2", "::1", undefined].map((address) => reads.beginSend(NAR, address));
  assert.equal(reads.sendCount, 1);
  assert.deepEqual(reads.sends(5), [
    { narName: NAR, clients: { count: 2, addresses: ["::1", "::2"] } },
  ]);
  assert.deepEqual(reads.sends(0), []);
  assert.deepEqual([...reads.names()].toSorted(), [NAR, OTHER].toSorted());
  for (const end of [...ends, ...ends]) end();
  assert.deepEqual([reads.sendCount, reads.has(NAR), reads.has(OTHER), ended], [0, false, true, 1]);
  endRead();
  assert.deepEqual([reads.names().size, ended], [0, 2]);
});

Deno.test("active reads: a file that is read and sent stays until both are over", () => {
  const reads = new ActiveReads();
  const endRead = reads.begin(NAR);
  const endSend = reads.beginSend(NAR, "::1");
  endSend();
  assert.deepEqual([reads.sendCount, reads.has(NAR)], [0, true]);
  endRead();
  assert.equal(reads.has(NAR), false);
});
