import assert from "node:assert/strict";
import { queuedNarinfoSource } from "../../../src/upstream/upstream_queue.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { NarinfoReading, NarinfoSource } from "../../../src/upstream/upstream.ts";
import { UpstreamPool } from "../../../src/upstream/upstream_pool.ts";
import { hash } from "../../support/metadata_rows.ts";

/** As many narinfos are in flight to one upstream. */
const IN_FLIGHT_MAX = 200;

Deno.test("spare upstreams: none, for NARs too, while a client's request queues", async () => {
  using upstream = new PlayedUpstream();
  const log = createLogger("error", { write: (line) => console.error(line) });
  const source = queuedNarinfoSource(upstream, { timeoutMs: 20_000, limitMs: 20_000, log });
  const heard = {
    observe() {},
    observeNar() {},
    skipped() {},
    waited: () => false,
    askedAgain() {},
    quick() {},
    noted() {},
    changed() {},
  };
  using pool = new UpstreamPool({ upstreams: [source], ...heard });
  const ask = (at: number) => pool.narinfo(hash(`client ${at}`), { requestId: "test" });
  await ask(0);
  assert.equal(pool.hasQueue(upstream.url), false);
  const held = upstream.hold(IN_FLIGHT_MAX);
  const asked = Array.from({ length: IN_FLIGHT_MAX }, (_, at) => ask(at));
  await held;
  assert.equal(pool.spare(), "later");
  assert.equal(pool.hasQueue(upstream.url), true);
  upstream.release();
  await Promise.all(asked);
  assert.equal(pool.hasQueue(upstream.url), false);
});

/** Answers that it has no such path, at once or when the test says so. */
class PlayedUpstream implements NarinfoSource, Disposable {
  readonly url = "http://upstream.test";
  readonly priority = 1;
  #left = 0;
  #held = Promise.withResolvers<void>();
  #answered = Promise.withResolvers<void>();

  constructor() {
    this.#answered.resolve();
  }

  /** Holds the answers. Resolves when so many requests are here. */
  hold(count: number): Promise<void> {
    [this.#left, this.#held, this.#answered] = [
      count,
      Promise.withResolvers(),
      Promise.withResolvers(),
    ];
    return this.#held.promise;
  }

  release(): void {
    this.#answered.resolve();
  }

  async narinfo(): Promise<NarinfoReading> {
    if (--this.#left === 0) this.#held.resolve();
    await this.#answered.promise;
    return { kind: "absent" };
  }

  describe(): Promise<number> {
    return Promise.resolve(this.priority);
  }

  reach(): Promise<boolean> {
    return Promise.resolve(true);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
