import assert from "node:assert/strict";
import type { Changed, ChangeFeed } from "../../src/metadata/change_feed.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { hash, put } from "../support/metadata_rows.ts";
import { eventually } from "../support/eventually.ts";
import type { Clauses } from "./contract.ts";

/** The feed of one member, and the stores of two members on one database. */
export interface WatchedDatabase {
  readonly feed: ChangeFeed;
  /** The store of the feed's own member. */
  readonly own: Pick<MetadataStore, "apply">;
  readonly other: Pick<MetadataStore, "apply">;
  /** Resolves when the feed has reported every earlier change that it reports. */
  reported(): Promise<void>;
}

const [a, b] = [put(hash("a"), []), put(hash("b"), [])];

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

/** Collects what a feed reports. */
class Subscriber implements AsyncDisposable {
  readonly changes: Changed[] = [];
  readonly #subscription: AsyncDisposable;

  constructor(feed: ChangeFeed) {
    this.#subscription = feed.subscribe((changed) => void this.changes.push(changed));
  }

  /** Whether a report says that this row may have changed. */
  covers(storePathHash: typeof a.row.storePathHash): boolean {
    return this.changes.some((changed) =>
      changed === "all" || changed.storePaths.includes(storePathHash)
    );
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
