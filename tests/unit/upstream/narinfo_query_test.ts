import assert from "node:assert/strict";
import type { Narinfo } from "../../../src/nix/narinfo.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { NarinfoQuery, type PoolAnswer } from "../../../src/upstream/narinfo_query.ts";
import { PooledUpstream } from "../../../src/upstream/pooled_upstream.ts";
import type { QueuedReading } from "../../../src/upstream/upstream.ts";
import { PlayedTime } from "../../support/played_time.ts";

const HASH = "0".repeat(32) as StorePathHash;
const WAIT_MS = 800;
const NARINFO = {} as Narinfo;

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

for (const [usualMs, patienceMs] of [[undefined, 300], [60, 120], [2_500, 300]] as const) {
  const usually = usualMs === undefined ? "is new" : `usually takes ${usualMs} ms`;
  Deno.test(`query: a better one that ${usually} is waited for ${patienceMs} ms`, async () => {
    using time = new PlayedTime();
    const waits: unknown[] = [];
    const upstreamOf = (priority: number, reading: Promise<QueuedReading>) =>
      new PooledUpstream({
        url: `http://${priority}.example`,
        priority,
        describe: () => new Promise(() => {}),
        reach: () => Promise.resolve(true),
        narinfo: () => reading,
      }, { changed: () => {}, noted: () => {} });
    using better = upstreamOf(10, new Promise(() => {}));
    if (usualMs !== undefined) better.usual.narinfo.note(usualMs);
    const found = { kind: "found", narinfo: NARINFO, trusted: true } as const;
    using other = upstreamOf(20, Promise.resolve(found));
    using query = new NarinfoQuery([better, other], {
      ...{ rank: "client", mayGoOn: false, observe: () => {} } as const,
      waited: (upstream, wait) => void waits.push([upstream, wait]),
    });
    let kind: string | undefined;
    void query.ask(HASH).then((answer) => kind = answer.kind);
    await time.settled();
    await time.advance(patienceMs - 1);
    assert.equal(kind, undefined);
    await time.advance(1);
    await time.settled();
    assert.equal(kind, "found");
    assert.deepEqual(waits, [
      ["http://10.example", { ms: patienceMs, isLate: true }],
      ["http://20.example", { ms: 0, isLate: false }],
    ]);
  });
}

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
    const options = { rank: "client", mayGoOn: true, observe: () => {}, waited: () => {} } as const;
    this.#query = new NarinfoQuery([this.#upstream], options);
    void this.#query.ask(HASH).then(({ kind }) => this.kind = kind);
  }

  [Symbol.dispose](): void {
    this.#query[Symbol.dispose]();
    this.#upstream[Symbol.dispose]();
  }
}
