import assert from "node:assert/strict";
import type { Bytes } from "../../../src/base/bytes.ts";
import type { NarAnswer } from "../../../src/cache/nar/nar_answer.ts";
import { fetchNar } from "../../../src/cache/fetch/sink_fetcher.ts";
import type { NarSink } from "../../../src/cache/fetch/nar_fetcher.ts";
import { OwnCopy } from "../../../src/cache/serve_member_download.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";

/** An answer with these pieces; after them it waits for ever. */
function scene(...pieces: readonly string[]) {
  let released = 0;
  let cancelled = 0;
  const answer: NarAnswer = {
    cacheResult: "JOINED",
    fileSize: undefined,
    tag: undefined,
    whole: () => undefined,
    read: () =>
      Promise.resolve(
        new ReadableStream<Bytes>({
          start(controller) {
            for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
          },
          cancel: () => void cancelled++,
        }),
      ),
    release: () => void released++,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { answer, counts: () => [released, cancelled] };
}

Deno.test("own copy: a client that leaves ends its read at once", async () => {
  const { answer, counts } = scene("some");
  const left = new AbortController();
  const copy = new OwnCopy(() => Promise.resolve(answer));
  const { body } = await copy.openNar("", { offset: 0, signal: left.signal });
  const reader = body.getReader();
  assert.equal((await reader.read()).value?.length, 4);
  const next = reader.read();
  assert.deepEqual(counts(), [0, 0]);

  left.abort(new Error("it left"));

  await assert.rejects(next, /it left/);
  assert.deepEqual(counts(), [1, 1]);
});

Deno.test("own copy: it opens for a signal that ends a copy before it begins", async () => {
  const signals: AbortSignal[] = [];
  const copy = new OwnCopy((signal) => {
    signals.push(signal);
    return Promise.resolve(undefined);
  });
  const { signal } = new AbortController();
  await assert.rejects(copy.openNar("", { offset: 0, signal }), { reason: "outrun" });
  assert.deepEqual(signals, [signal]);
});

Deno.test("own copy: a client waits five seconds for it to catch up, then asks an upstream", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { answer } = scene();
  const copy = new OwnCopy(() => Promise.resolve(answer));
  const source = { upstream: "own", location: "nar" };
  const { outcome, waitedMs } = await played.play((async () => {
    const fromMs = clock.nowMs();
    const outcome = await fetchNar({
      ...{ upstream: copy, source, sink: sinkWith(1_000), idleTimeoutMs: copy.idleTimeoutMs },
      request: { signal: new AbortController().signal, isFinal: true, requested: () => {} },
      take: () => true,
    });
    return { outcome, waitedMs: clock.nowMs() - fromMs };
  })());
  assert.equal(outcome.type === "failed" && outcome.reason, "stalled");
  assert.equal(waitedMs, 5_000);
});

/** The sink of a client that has so many bytes of a larger file. */
function sinkWith(received: number): NarSink {
  return {
    order: { fileSizeMax: 2 * received, anySource: true },
    ...{ received, fileSize: 2 * received, digest: new Uint8Array(32), copies: true },
    resumeAt: () => ({ offset: received }),
    begin: () => {},
    has: () => true,
    write: () => {},
    pause: () => {},
    [Symbol.dispose]: () => {},
  };
}
