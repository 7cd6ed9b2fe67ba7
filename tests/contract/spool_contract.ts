import assert from "node:assert/strict";
import { newMemberId } from "../../src/base/member_id.ts";
import { RECEIVED_SUFFIX, type Spool } from "../../src/storage/spool.ts";
import type { Clauses } from "./contract.ts";

/** The temporary files of one machine, as one member sees them. */
export interface SpoolScene {
  readonly spool: Spool;
  /** The folder that all members share. */
  readonly base: string;
  /** The member's own folder. */
  readonly own: string;
}

const [dead, alive] = [newMemberId("host.example", 1), newMemberId("host.example", 2)];

const WHOLE = `y${RECEIVED_SUFFIX}`;

/** The promises of a spool that knows of no other member. */
export const loneSpoolClauses: Clauses<{ readonly spool: Spool }> = {
  "a member without a folder is no other, and nothing of it is left": async ({ spool }) => {
    assert.deepEqual(spool.others(), []);
    assert.equal(spool.remove(dead), true);
  },
};

/** The promises of a spool to the members that share a folder. */
export const spoolClauses: Clauses<SpoolScene> = {
  "others() names the other members, and not itself": async ({ spool, base }) => {
    for (const member of [dead, alive]) Deno.mkdirSync(`${base}/${member}`);
    Deno.mkdirSync(`${base}/of-no-member`);
    assert.deepEqual([...spool.others()].toSorted(), [dead, alive].toSorted());
  },

  "remove() removes a member's folder, and no other": async ({ spool, base }) => {
    for (const member of [dead, alive]) {
      Deno.mkdirSync(`${base}/${member}`);
      Deno.writeTextFileSync(`${base}/${member}/x.part`, "growing");
    }
    assert.equal(spool.remove(dead), true);
    assert.deepEqual(spool.others(), [alive]);
    assert.throws(() => Deno.statSync(`${base}/${dead}`), Deno.errors.NotFound);
    assert.equal(Deno.readTextFileSync(`${base}/${alive}/x.part`), "growing");
  },

  "remove() takes over the whole files, and no others": async ({ spool, base, own }) => {
    Deno.mkdirSync(`${base}/${dead}`);
    Deno.writeTextFileSync(`${base}/${dead}/x.part`, "growing");
    Deno.writeTextFileSync(`${base}/${dead}/${WHOLE}`, "whole");
    assert.equal(spool.remove(dead), true);
    assert.deepEqual([...Deno.readDirSync(own)].map(({ name }) => name), [WHOLE]);
    assert.equal(Deno.readTextFileSync(`${own}/${WHOLE}`), "whole");
  },

  "remove() is false while something is left, and true once it is gone": async (
    { spool, base },
  ) => {
    // A file where a folder should be: nobody can list it.
    Deno.writeTextFileSync(`${base}/${dead}`, "");
    assert.equal(spool.remove(dead), false);
    assert.deepEqual(spool.others(), [dead]);
    Deno.removeSync(`${base}/${dead}`);
    assert.equal(spool.remove(dead), true);
  },
};
