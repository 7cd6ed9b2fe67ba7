import assert from "node:assert/strict";
import {
  IntentLost,
  type MetadataStore,
  ReservationLost,
} from "../../src/metadata/metadata_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { PlayedChores } from "../support/played_chores.ts";
import type { Clauses } from "./contract.ts";

/** One database, as two members have it open, and its clock. */
export interface LedgerScene {
  readonly one: MetadataStore;
  readonly other: MetadataStore;
  /** Moves the clock of heartbeats; back by a negative time. */
  elapse(ms: number): void;
}

const LIMIT = 1_000;
const MINUTE_MS = 60_000;
const a = hash("a");
const file = fileOf(narOf(a).name, 100);

/** The promises of a space ledger to all members of a storage. */
export const spaceLedgerClauses: Clauses<LedgerScene> = {
  "reserve() fits beside stored and reserved bytes of all, to the byte": async (scene) => {
    const { one, other } = await joined(scene);
    await one.apply([put(a, []), ...keep(file)]);
    assert.equal(await one.reserve("one", needs(400)), 400);
    assert.equal(await other.reserve("other", needs(501)), undefined);
    assert.equal((await one.stock()).reservedBytes, 400);
    assert.equal(await other.reserve("other", needs(500)), 500);
    assert.equal((await one.stock()).reservedBytes, 900);
    assert.equal((await one.stock("one")).reservedBytes, 500);
  },

  "an object that is marked for removal takes room until it is gone": async (scene) => {
    const { one } = await joined(scene);
    await one.apply([put(a, []), ...keep(file), { kind: "nar-marked", at: file.at, owner: "one" }]);
    assert.equal(await one.reserve("one", needs(901)), undefined);
    await one.apply([{ kind: "nar-gone", at: file.at }]);
    assert.equal(await one.reserve("one", needs(901)), 901);
  },

  "reserve() gives up to the wanted bytes, and never takes any back": async (scene) => {
    const { one, other } = await joined(scene);
    assert.equal(await one.reserve("one", { ...needs(100), wantedBytes: 300 }), 300);
    assert.equal(await one.reserve("one", needs(200)), 300);
    assert.equal(await other.reserve("other", { ...needs(600), wantedBytes: 900 }), 700);
    assert.equal(await one.reserve("one", { ...needs(300), limitBytes: 10 }), 300);
  },

  "many reserve() at once never pass the limit together": async (scene) => {
    const { one, other } = await joined(scene);
    const raise = async (store: MetadataStore, member: string) => {
      let bytes = 0;
      while (await store.reserve(member, needs(bytes + 30)) !== undefined) bytes += 30;
      return bytes;
    };
    const reserved = await Promise.all([raise(one, "one"), raise(other, "other")]);
    assert.equal(reserved.reduce((sum, bytes) => sum + bytes), 990);
    assert.equal((await one.stock()).reservedBytes, 990);
  },

  "reserve() gives nothing to a member that is not there": async ({ one }) => {
    assert.equal(await one.reserve("one", needs(1)), undefined);
    assert.equal((await one.stock()).reservedBytes, 0);
  },

  "beat() gives back the bytes that the member does not hold": async (scene) => {
    const { one } = await joined(scene);
    await one.reserve("one", needs(700));
    assert.equal(await one.beat("one", { reservedBytes: 50, limitBytes: 10 }), 50);
    assert.equal((await one.stock()).reservedBytes, 50);
  },

  "a kept file's bytes count once at every moment": async (scene) => {
    const { one } = await joined(scene);
    await one.reserve("one", needs(LIMIT));
    const [intent, kept] = keep(file, 1, "one");
    assert.ok(intent && kept?.kind === "nar-kept");
    await one.apply([put(a, []), intent]);
    await one.apply([{ ...kept, reservedBytes: 130 }]);
    const { keptBytes, reservedBytes } = await one.stock();
    assert.deepEqual([keptBytes, reservedBytes], [100, LIMIT - 130]);
  },

  "a file whose reservation is gone is not kept, and its intent stays": async (scene) => {
    const { one, other } = await joined(scene);
    await one.reserve("one", needs(99));
    const [intent, kept] = keep(file, 1, "one");
    assert.ok(intent && kept?.kind === "nar-kept");
    await one.apply([put(a, []), intent]);
    const refused = one.apply([{ ...kept, reservedBytes: 100 }]);
    // A list of the same moment is written all the same.
    await one.apply([put(hash("b"), [])]);
    await assert.rejects(refused, ReservationLost);
    await other.leave("one");
    await assert.rejects(one.apply([{ ...kept, reservedBytes: 100 }]), ReservationLost);
    assert.equal((await one.findNar(narOf(a).name))?.kept, undefined);
    assert.equal((await one.pendingFiles()).length, 1);
    assert.ok(await one.findNarinfo(hash("b")));
    await one.apply([{ kind: "nar-gone", at: file.at }]);
    await assert.rejects(one.apply([kept]), IntentLost);
  },

  "a member that dies after reserve() gives its bytes back when it is removed": async (scene) => {
    const { one, other } = await joined(scene);
    await one.reserve("one", needs(LIMIT));
    assert.equal(await other.reserve("other", needs(1)), undefined);
    scene.elapse(40_000);
    await other.beat("other", { reservedBytes: 0, limitBytes: LIMIT });
    assert.deepEqual(await other.members("other"), [
      { id: "one", silentMs: 40_000 },
      { id: "other", silentMs: 0 },
    ]);
    await other.leave("one");
    assert.equal(await other.reserve("other", needs(LIMIT)), LIMIT);
  },

  "a member that dies between reserve() and the row gives its bytes back within a minute": async (
    scene,
  ) => {
    const { one, other } = await joined(scene);
    const elapse = (ms: number) => scene.elapse(ms);
    const living = { id: "other", metadata: other, limitBytes: LIMIT, elapse };
    await using chores = await PlayedChores.start(living);
    // The worst moment: a search for dead members comes just before its silence is long enough.
    await chores.advance(1);
    await one.beat("one", { reservedBytes: 0, limitBytes: LIMIT });
    await one.reserve("one", needs(LIMIT));
    await one.apply([put(a, []), { kind: "nar-publishing", at: file.at, owner: "one" }]);

    await chores.advance(29_000);
    assert.equal(await other.reserve("other", needs(1)), undefined, "it may only be slow");
    await chores.advance(MINUTE_MS - 29_000 - 1);
    assert.deepEqual((await other.members("other")).map(({ id }) => id), ["other"]);
    assert.deepEqual(await other.pendingFiles(), []);
    assert.equal(await other.reserve("other", needs(LIMIT)), LIMIT);
  },

  "what a member left while its back ends were away is gone within a minute": async (scene) => {
    const { one, other } = await joined(scene);
    const elapse = (ms: number) => scene.elapse(ms);
    const stuck = { kind: "nar-stuck", at: file.at, owner: "one", fileSize: 100 } as const;
    const { at } = fileOf(narOf(a).name);
    await one.apply([put(a, []), stuck, { kind: "nar-publishing", at, owner: "one" }]);
    await using chores = await PlayedChores.start({
      ...{ id: "one", metadata: one, limitBytes: LIMIT, elapse },
    });
    await chores.advance(MINUTE_MS);
    assert.deepEqual(await other.pendingFiles(), []);
    assert.equal((await other.stock()).pendingBytes, 0);
  },

  "a removed member that wakes up has its bytes again where they fit, else none": async (scene) => {
    const { one, other } = await joined(scene);
    await one.reserve("one", needs(600));
    await other.leave("one");
    await other.reserve("other", needs(500));
    const held = { reservedBytes: 600, limitBytes: LIMIT };
    assert.equal(await one.beat("one", held), 0);
    assert.equal((await one.stock()).reservedBytes, 500);
    await other.beat("other", { reservedBytes: 400, limitBytes: LIMIT });
    assert.equal(await one.beat("one", held), 600);
  },

  "members() tells where each member is reached, as of its last heartbeat": async (scene) => {
    const { one, other } = await joined(scene);
    const url = "http://one.example:8501";
    await one.beat("one", { reservedBytes: 0, limitBytes: LIMIT, url });
    const urls = async () => (await other.members("other")).map((member) => member.url);
    assert.deepEqual(await urls(), [url, undefined]);
    await one.beat("one", { reservedBytes: 0, limitBytes: LIMIT });
    assert.deepEqual(await urls(), [undefined, undefined]);
  },

  "silence counts up to the observer's own last heartbeat alone": async (scene) => {
    const { one } = await joined(scene);
    // A suspended machine wakes: nobody had a chance to write.
    scene.elapse(3_600_000);
    assert.deepEqual(await silences(one, "one"), [0, 0]);
    assert.deepEqual(await silences(one, "stranger"), [3_600_000, 3_600_000]);
    await one.beat("one", { reservedBytes: 0, limitBytes: LIMIT });
    assert.deepEqual(await silences(one, "one"), [0, 3_600_000]);
  },

  "a clock that is set back silences no member, and hides no member's silence": async (scene) => {
    const { one, other } = await joined(scene);
    scene.elapse(-3_600_000);
    await other.beat("other", { reservedBytes: 0, limitBytes: LIMIT });
    assert.deepEqual(await silences(one, "one"), [0, 0]);
    scene.elapse(40_000);
    await other.beat("other", { reservedBytes: 0, limitBytes: LIMIT });
    assert.deepEqual(await silences(other, "other"), [40_000, 0]);
  },
};

/** Both are members. */
async function joined(scene: LedgerScene): Promise<LedgerScene> {
  await scene.one.beat("one", { reservedBytes: 0, limitBytes: LIMIT });
  await scene.other.beat("other", { reservedBytes: 0, limitBytes: LIMIT });
  return scene;
}

function needs(neededBytes: number) {
  return { neededBytes, wantedBytes: neededBytes, limitBytes: LIMIT };
}

/** By member, in the order of their names. */
async function silences(store: MetadataStore, observer: string): Promise<readonly number[]> {
  return (await store.members(observer)).map(({ silentMs }) => silentMs);
}
