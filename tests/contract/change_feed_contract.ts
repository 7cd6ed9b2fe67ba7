import assert from "node:assert/strict";
import type { Changed, ChangeFeed } from "../../src/metadata/change_feed.ts";
import type { Change, MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { Seal } from "../../src/nix/stored_name.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { fileOf, hash, keep, put } from "../support/metadata_rows.ts";
import { eventually } from "../support/eventually.ts";
import type { Clauses } from "./contract.ts";

/** How another member writes. */
type OtherWriter = "apply" | "beat" | "reserve" | "recordHistory" | "protect" | "evict";

/** The feed of one member, and the stores of two members on one database. */
export interface WatchedDatabase {
  readonly feed: ChangeFeed;
  /** The store of the feed's own member. */
  readonly own: Pick<MetadataStore, "apply">;
  readonly other: Pick<MetadataStore, OtherWriter>;
  /** Resolves when the feed has reported every earlier change that it reports. */
  reported(): Promise<void>;
}

const [a, b] = [put(hash("a"), []), put(hash("b"), [])];
const file = fileOf(a.nar.name);

const USE_COUNT = { tier: "lifetime", atMs: 0, figure: "nar_hits", amount: 1 } as const;

/** Writes of a member, in this order, to rows that others may hold in memory. */
const WRITES: readonly (readonly Change[])[] = [
  [{ ...a, row: { ...a.row, body: `${a.row.body}Deriver: x.drv\n` } }],
  keep(file),
  [{ kind: "nar-sealed", at: file.at, seal: "1" as Seal }],
  [{ kind: "put-pin", pin: { storePathHash: hash("root"), pinnedAtMs: 1 } }],
  [{ kind: "remove-pin", storePathHash: hash("root") }],
  [{ kind: "nar-marked", at: file.at, owner: "we" }],
  [{ kind: "nar-gone", at: file.at }],
  [{ kind: "remove-narinfo", storePathHash: a.row.storePathHash }],
];

export const changeFeedClauses: Clauses<WatchedDatabase> = {
  "a change of another member reaches every subscriber": async ({ feed, other }) => {
    await using one = new Subscriber(feed);
    await using two = new Subscriber(feed);
    await other.apply([a]);
    for (const subscriber of [one, two]) {
      await eventually("the change is reported", () => subscriber.covers(a.row.storePathHash));
    }
  },

  "each later change is reported too": async ({ feed, other, reported }) => {
    await using subscriber = new Subscriber(feed);
    await other.apply([a]);
    await reported();
    subscriber.changes.length = 0;
    await other.apply([b]);
    await eventually("the change is reported", () => subscriber.covers(b.row.storePathHash));
  },

  "a change of the own member is not reported": async ({ feed, own, reported }) => {
    await using subscriber = new Subscriber(feed);
    await own.apply([a]);
    await reported();
    assert.deepEqual(subscriber.changes, []);
  },

  "a change of the own member hides none of another member": async ({ feed, own, other }) => {
    await using subscriber = new Subscriber(feed);
    // Together, so that no look at the database comes between them.
    await Promise.all([other.apply([a]), own.apply([b])]);
    await eventually("the change is reported", () => subscriber.covers(a.row.storePathHash));
  },

  "every write of another member is reported": async ({ feed, other, reported }) => {
    await other.apply([a]);
    await using subscriber = new Subscriber(feed);
    for (const changes of WRITES) {
      subscriber.changes.length = 0;
      await other.apply(changes);
      const [{ kind } = a] = changes;
      await eventually(`a ${kind} is reported`, () => subscriber.changes.length > 0);
      await reported();
    }
  },

  "an eviction by another member is reported": async ({ feed, other, reported }) => {
    await other.apply([a, ...keep(file)]);
    while (await other.protect(1_000));
    await using subscriber = new Subscriber(feed);
    await other.evict({ bytesMin: 1, entriesMax: 1, spared: new Set(), owner: "we" });
    await reported();
    assert.ok(subscriber.covers(a.row.storePathHash));
    assert.ok(subscriber.coversNar(a.nar.name));
  },

  "heartbeats, reservations, uses and history of other members are not reported": async (
    database,
  ) => {
    const { feed, own, other, reported } = database;
    await other.beat("other", { reservedBytes: 0, limitBytes: 1_000 });
    await own.apply([a]);
    await using subscriber = new Subscriber(feed);
    await other.beat("other", { reservedBytes: 10, limitBytes: 1_000 });
    await other.reserve("other", { neededBytes: 20, wantedBytes: 30, limitBytes: 1_000 });
    await other.apply([
      { kind: "touch-narinfo", storePathHash: a.row.storePathHash, atMs: 2_000 },
      { kind: "touch-nar", narName: a.nar.name, atMs: 2_000 },
    ]);
    await other.recordHistory([USE_COUNT], []);
    await own.apply([b]);
    await reported();
    assert.deepEqual(subscriber.changes, []);
  },

  "work without a change by another member is not reported": async (database) => {
    const { feed, other, reported } = database;
    while (await other.protect(1_000));
    await using subscriber = new Subscriber(feed);
    await other.protect(1_000);
    await other.evict({ bytesMin: 1, entriesMax: 1, spared: new Set(), owner: "we" });
    await reported();
    assert.deepEqual(subscriber.changes, []);
  },

  "a change before the subscription is not reported": async ({ feed, other, reported }) => {
    await other.apply([a]);
    await using subscriber = new Subscriber(feed);
    await reported();
    assert.deepEqual(subscriber.changes, []);
  },

  "after its disposal a subscriber gets nothing, and the others go on": async (database) => {
    const { feed, other, reported } = database;
    const left = new Subscriber(feed);
    await using stays = new Subscriber(feed);
    await left[Symbol.asyncDispose]();
    await other.apply([a]);
    await reported();
    assert.deepEqual(left.changes, []);
    assert.ok(stays.covers(a.row.storePathHash));
  },

  "a subscriber that throws stops no other, now or later": async ({ feed, other, reported }) => {
    using uncaught = new UncaughtErrors();
    await using _throws = feed.subscribe(() => {
      throw new Error("a broken subscriber");
    });
    await using stays = new Subscriber(feed);
    for (const change of [a, b]) {
      await other.apply([change]);
      await reported();
      assert.ok(stays.covers(change.row.storePathHash));
    }
    assert.deepEqual(new Set(uncaught.messages), new Set(["a broken subscriber"]));
  },
};

/** Collects the reports of a feed. */
class Subscriber implements AsyncDisposable {
  readonly changes: Changed[] = [];
  readonly #subscription: AsyncDisposable;

  constructor(feed: ChangeFeed) {
    this.#subscription = feed.subscribe((changed) => void this.changes.push(changed));
  }

  /** Whether a report says that this row may have changed. */
  covers(storePathHash: StorePathHash): boolean {
    return this.changes.some((changed) =>
      changed === "all" || changed.storePaths.includes(storePathHash)
    );
  }

  coversNar(narName: NarName): boolean {
    return this.changes.some((changed) => changed === "all" || changed.nars.includes(narName));
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#subscription[Symbol.asyncDispose]();
  }
}

/** The uncaught errors of a scope, which do not end the process. */
class UncaughtErrors implements Disposable {
  readonly messages: string[] = [];
  readonly #listener = (event: ErrorEvent) => {
    event.preventDefault();
    this.messages.push(event.error.message);
  };

  constructor() {
    globalThis.addEventListener("error", this.#listener);
  }

  [Symbol.dispose](): void {
    globalThis.removeEventListener("error", this.#listener);
  }
}
