import assert from "node:assert/strict";
import type { WorkLease } from "../../src/locks/leases.ts";
import type { NarHolder, WorkLeases } from "../../src/locks/work_leases.ts";
import { hash, narOf } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

/** The leases of two members of one storage. */
export interface WorkLeasesScene {
  readonly one: WorkLeases;
  readonly other: WorkLeases;
  /** The URL of `one`. */
  readonly url: string;
  /** From now on `one` is known to be dead. It ends no lease. */
  die(): void;
}

const STORE_PATH_HASH = hash("a");
const NAR = narOf(STORE_PATH_HASH).name;
const OTHER_NAR = narOf(hash("b")).name;
const NOBODY: NarHolder = { url: "http://127.0.0.1:1" };

const done = () => Promise.resolve(true);
const notDone = () => Promise.resolve(false);

/** One lease of each kind. */
const KINDS: readonly ((leases: WorkLeases) => Promise<WorkLease>)[] = [
  (leases) => leases.nar(NAR, notDone),
  (leases) => leases.narinfo(STORE_PATH_HASH, notDone),
  (leases) => leases.eviction(),
  (leases) => leases.repair(),
  (leases) => leases.recompression(),
  (leases) => leases.pinLook(),
];

/** The promises of leases to a member without others, whether or not its locks answer. */
export const loneLeasesClauses: Clauses<{ readonly leases: WorkLeases }> = {
  "each lease of a lone member is its own": async ({ leases }) => {
    for (const take of KINDS) {
      await using lease = await take(leases);
      assert.equal(lease.kind, "ours");
    }
  },

  "a lease that is over can be taken again, and may end twice": async ({ leases }) => {
    for (const take of KINDS) {
      const lease = await take(leases);
      await lease[Symbol.asyncDispose]();
      await using next = await take(leases);
      await lease[Symbol.asyncDispose]();
      assert.equal(next.kind, "ours");
    }
  },

  "no other member has the NAR that this one downloads": async ({ leases }) => {
    await using _lease = await leases.nar(NAR, notDone);
    assert.equal(await leases.holderOf(NAR), undefined);
  },

  "stopped() does not reject for a member that has nothing": async ({ leases }) => {
    assert.equal(await leases.stopped(NAR, NOBODY), undefined);
  },
};

/** The promises of leases to members that share locks. */
export const workLeasesClauses: Clauses<WorkLeasesScene> = {
  "a lease that one member has is theirs for the other, until it is over": async (scene) => {
    const { one, other } = scene;
    for (const take of [KINDS[0], KINDS[2], KINDS[3]]) {
      const lease = await take?.(one);
      assert.equal((await take?.(other))?.kind, "theirs");
      await lease?.[Symbol.asyncDispose]();
      await using next = await take?.(other);
      assert.equal(next?.kind, "ours");
    }
  },

  "leases at different work exclude nobody": async ({ one, other }) => {
    await using held = new AsyncDisposableStack();
    for (const take of KINDS) assert.equal(held.use(await take(one)).kind, "ours");
    let looks = 0;
    const looked = async () => ++looks < 0;
    const nar = held.use(await other.nar(OTHER_NAR, looked));
    const narinfo = held.use(await other.narinfo(hash("b"), looked));
    assert.deepEqual([nar.kind, narinfo.kind], ["ours", "ours"]);
    assert.equal(looks, 2, "each is had at once");
  },

  "holderOf() names the other member that downloads a NAR, while it does": async (scene) => {
    const { one, other, url } = scene;
    {
      await using _lease = await one.nar(NAR, notDone);
      assert.deepEqual(await other.holderOf(NAR), { url });
      assert.equal(await one.holderOf(NAR), undefined);
      assert.equal(await other.holderOf(OTHER_NAR), undefined);
    }
    assert.equal(await other.holderOf(NAR), undefined);
  },

  "a holder without a member's row is none, whatever the locks say": async (scene) => {
    const { one, other, die } = scene;
    await using _lease = await one.nar(NAR, notDone);
    die();
    assert.equal(await other.holderOf(NAR), undefined);
  },

  "work that is done is no member's lease, and holds no lock": async ({ one, other }) => {
    for (let round = 0; round < 2; round++) {
      assert.equal((await one.nar(NAR, done)).kind, "done");
      assert.equal((await one.narinfo(STORE_PATH_HASH, done)).kind, "done");
    }
    for (const take of KINDS) {
      await using lease = await take(other);
      assert.equal(lease.kind, "ours");
    }
  },

  "work that is done while another member has the lease is done": async ({ one, other }) => {
    await using _nar = await one.nar(NAR, notDone);
    await using _narinfo = await one.narinfo(STORE_PATH_HASH, notDone);
    assert.equal((await other.nar(NAR, done)).kind, "done");
    assert.equal((await other.narinfo(STORE_PATH_HASH, done)).kind, "done");
  },

  "a member waits for the narinfo that another one asks for": async ({ one, other }) => {
    await using lease = await one.narinfo(STORE_PATH_HASH, notDone);
    const looks: boolean[] = [];
    const waiting = await other.narinfo(STORE_PATH_HASH, async () => {
      const isStored = looks.length >= 2;
      if (looks.push(isStored) === 2) await lease[Symbol.asyncDispose]();
      return isStored;
    });
    assert.equal(waiting.kind, "done");
    assert.deepEqual(looks, [false, false, true]);
  },

  "the end of a lease that is over ends nobody else's": async ({ one, other }) => {
    const lease = await one.eviction();
    await lease[Symbol.asyncDispose]();
    await using _next = await other.eviction();
    await lease[Symbol.asyncDispose]();
    assert.equal((await one.eviction()).kind, "theirs");
  },

  "the lease of a member that is dead is taken over": async ({ one, other, die }) => {
    await using held = new AsyncDisposableStack();
    for (const take of KINDS) held.use(await take(one));
    die();
    for (const take of KINDS) {
      await using lease = await take(other);
      assert.equal(lease.kind, "ours");
    }
  },

  "stopped() lets the next member have the NAR of that holder": async ({ one, other }) => {
    await using _lease = await one.nar(NAR, notDone);
    const holder = await other.holderOf(NAR);
    assert.ok(holder);
    await other.stopped(NAR, holder);
    await using next = await other.nar(NAR, notDone);
    assert.equal(next.kind, "ours");
  },

  "stopped() of another holder leaves the NAR to the one that has it": async (scene) => {
    const { one, other, url } = scene;
    await using _lease = await one.nar(NAR, notDone);
    await other.stopped(NAR, NOBODY);
    await other.stopped(OTHER_NAR, { url });
    assert.equal((await other.nar(NAR, notDone)).kind, "theirs");
  },
};
