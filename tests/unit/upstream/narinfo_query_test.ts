import assert from "node:assert/strict";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { NarinfoQuery, type PoolAnswer } from "../../../src/upstream/narinfo_query.ts";
import { PooledUpstream } from "../../../src/upstream/pooled_upstream.ts";
import type { QueuedReading } from "../../../src/upstream/upstream.ts";
import { PlayedTime } from "../../support/played_time.ts";

const HASH = "0".repeat(32) as StorePathHash;
const WAIT_MS = 800;

Deno.test("query: it ends its wait for an upstream that takes no connection", async () => {
  using time = new PlayedTime();
  using scene = new Scene();
  await time.advance(WAIT_MS - 1);
  assert.equal(scene.kind, undefined);
  await time.advance(1);
  await time.settled();
  assert.equal(scene.kind, "unknown");
});

Deno.test("query: a standstill of larder's thread is no silence of the upstream", async () => {
  using time = new PlayedTime();
  using scene = new Scene();
  time.standStill(60_000);
  await time.advance(0);
  // It came during the standstill.
  scene.reading.resolve({ kind: "absent" });
  await time.advance(0);
  assert.equal(scene.kind, "absent");
});

/** A query of an upstream that is new. */
class Scene implements Disposable {
  readonly reading = Promise.withResolvers<QueuedReading>();
  kind: PoolAnswer["kind"] | undefined;
  readonly #upstream: PooledUpstream;
  readonly #query: NarinfoQuery;

  constructor() {
    const { promise } = this.reading;
    this.#upstream = new PooledUpstream(
      {
        url: "http://upstream.example",
        priority: 30,
        describe: () => new Promise(() => {}),
        reach: () => new Promise(() => {}),
        narinfo: () => promise,
      },
      { changed: () => {}, noted: () => {} },
    );
    const options = { rank: "client", mayGoOn: true, observe: () => {} } as const;
    this.#query = new NarinfoQuery([this.#upstream], options);
    void this.#query.ask(HASH).then(({ kind }) => this.kind = kind);
  }

  [Symbol.dispose](): void {
    this.#query[Symbol.dispose]();
    this.#upstream[Symbol.dispose]();
  }
}
