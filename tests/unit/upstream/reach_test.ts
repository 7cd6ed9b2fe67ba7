import { SYSTEM_NET } from "../../../src/runtime/system_net.ts";
import assert from "node:assert/strict";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { createUpstreamClient } from "../../../src/upstream/http/upstream_fetch.ts";
import {
  HttpNarinfoFetcher,
  HttpNarinfoSource,
} from "../../../src/upstream/http/http_narinfo_source.ts";
import type { NarinfoReading, NarinfoSource } from "../../../src/upstream/upstream.ts";
import { UpstreamPool } from "../../../src/upstream/upstream_pool.ts";
import { BlackHole } from "../../support/black_hole.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { PlayedTime } from "../../support/played_time.ts";

const HASH = "0".repeat(32) as StorePathHash;
/** Much longer than an upstream is waited for that takes no connection. */
const SLOW_MS = 20_000;
const REACHED = [
  ["one that is there gets its time", true, "absent", SLOW_MS],
  ["one that is not is cut short", false, "unknown", 800],
] as const;

Deno.test("reach: requests to an unproven upstream share a dial, others have none", async () => {
  using upstream = new PlayedUpstream();
  using pool = poolOf(upstream);
  const asking = Array.from({ length: 5 }, () => ask(pool));
  assert.equal(upstream.dials.length, 1);
  upstream.dials[0]?.resolve(true);
  upstream.answer({ kind: "absent" });
  await Promise.all(asking);

  const again = ask(pool);
  upstream.answer({ kind: "absent" });
  assert.deepEqual(await again, { kind: "absent" });
  assert.equal(upstream.dials.length, 1);
});

Deno.test("reach: an upstream that fell silent is dialled again", async () => {
  using upstream = new PlayedUpstream();
  using pool = poolOf(upstream);
  for (const count of [1, 2]) {
    const asking = ask(pool);
    assert.equal(upstream.dials.length, count);
    upstream.dials.at(-1)?.resolve(true);
    upstream.answer({ kind: "failed", reason: "timeout", detail: "" });
    await asking;
  }
});

for (const [promise, isReached, kind, atMs] of REACHED) {
  Deno.test(`reach: of the unproven ${promise}`, async () => {
    const played = new VirtualClock();
    using _runtime = playRuntime({ clock: played });
    using upstream = new PlayedUpstream();
    using pool = poolOf(upstream);
    const startedAtMs = played.nowMs();
    const asking = ask(pool);
    if (isReached) upstream.dials[0]?.resolve(true);
    played.after(SLOW_MS, () => upstream.answer({ kind: "absent" }));
    const reading = await played.play(asking);
    assert.deepEqual([reading.kind, played.nowMs() - startedAtMs], [kind, atMs]);
  });
}

Deno.test("reach: a listener is there, a closed port and a black hole are not", async () => {
  using hole = await BlackHole.open();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${listener.addr.port}/base`;
  assert.equal(await reach(url), true);
  listener.close();
  assert.equal(await reach(url), false);
  assert.equal(await reach(hole.url), false);
  assert.equal(await reach(hole.url, AbortSignal.abort()), false);
});

Deno.test("reach: a standstill of this thread cuts no dial short", async () => {
  using hole = await BlackHole.open();
  using time = new PlayedTime();
  const leaving = new AbortController();
  let isOver = false;
  const reaching = reach(hole.url, leaving.signal).finally(() => isOver = true);
  time.standStill(60_000);
  await time.advance(0);
  await time.settled();
  assert.equal(isOver, false);
  leaving.abort();
  assert.equal(await reaching, false);
});

Deno.test("reach: behind a proxy no upstream is dialled, all count as reachable", async () => {
  using hole = await BlackHole.open();
  assert.equal(await reach(hole.url, undefined, true), true);
});

/** Answers, and is dialled, when the test says so. */
class PlayedUpstream implements NarinfoSource, Disposable {
  readonly url = "http://upstream.test";
  readonly priority = 1;
  readonly dials: PromiseWithResolvers<boolean>[] = [];
  #asked: PromiseWithResolvers<NarinfoReading>[] = [];

  narinfo(): Promise<NarinfoReading> {
    const asked = Promise.withResolvers<NarinfoReading>();
    this.#asked.push(asked);
    return asked.promise;
  }

  describe(): Promise<number> {
    return Promise.resolve(1);
  }

  reach(): Promise<boolean> {
    const dial = Promise.withResolvers<boolean>();
    this.dials.push(dial);
    return dial.promise;
  }

  answer(reading: NarinfoReading): void {
    for (const asked of this.#asked) asked.resolve(reading);
    this.#asked = [];
  }

  [Symbol.dispose](): void {
    for (const dial of this.dials) dial.resolve(false);
    this.answer({ kind: "absent" });
  }
}

function poolOf(upstream: NarinfoSource): UpstreamPool {
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
  return new UpstreamPool({ upstreams: [upstream], ...heard });
}

function ask(pool: UpstreamPool) {
  return pool.narinfo(HASH, { requestId: "test" });
}

async function reach(
  url: string,
  signal = new AbortController().signal,
  viaProxy = false,
): Promise<boolean> {
  using client = createUpstreamClient(SYSTEM_NET, []);
  const settings = {
    url,
    viaProxy,
    dialTimeoutMs: 150,
    headerTimeoutMs: 150,
    idleTimeoutMs: 150,
    userAgent: "larder-test",
  };
  const rules = { keys: new TrustedKeys([]), requireSignature: true };
  const fetcher = new HttpNarinfoFetcher({ settings, client, ...rules });
  return await new HttpNarinfoSource({ settings, client, fetcher }).reach(signal);
}
