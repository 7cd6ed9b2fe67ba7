import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { RELAY_LIMITS } from "../../../../src/http/tls/relay.ts";
import { type End, Relayed, type RelayReason } from "../../../../src/http/tls/relayed.ts";

const TAKEN_MAX = 10_000_000;
const HELD_BYTES_MAX = 64 * 1024;

Deno.test("relayed: for a client that stops taking it holds 64 KiB at most", async () => {
  const stalled = Promise.withResolvers<void>();
  const never = new Promise<never>(() => {});
  let taken = 0;
  let heldBytes = 0;
  const client: End = {
    ...nothing,
    read: () => never,
    async write(bytes) {
      if (taken < TAKEN_MAX) return taken += bytes.length, bytes.length;
      heldBytes = bytes.buffer.byteLength;
      stalled.resolve();
      return await never;
    },
  };
  // There is always more than fits.
  const inner: End = { ...nothing, read: (into) => Promise.resolve(into.length) };
  const relayed = new Relayed({ client, inner }, { beganAtMs: 0, nowMs: () => 0 });
  relayed.known();
  void relayed.run(new Uint8Array(1));
  await stalled.promise;
  assert.ok(heldBytes <= HELD_BYTES_MAX, `${heldBytes} bytes`);
});

Deno.test("relayed: a handshake has 20 seconds, and is then never asked for again", async () => {
  const scene = new Scene();
  scene.nowMs = 20_000;
  assert.equal(scene.overdue, undefined);
  scene.nowMs = 20_001;
  assert.equal(scene.overdue, "incomplete TLS handshake");
  scene.relayed.secured();
  scene.nowMs = DAY_MS;
  assert.equal(scene.overdue, undefined, "an idle client is the inner server's");
});

Deno.test("relayed: a client may take nothing for a little over five minutes", async () => {
  const scene = new Scene({ takesNothing: true });
  scene.relayed.secured();
  scene.nowMs = 1_000;
  await scene.inner.push(HELLO);
  scene.nowMs += 310_000;
  assert.equal(scene.overdue, undefined);
  scene.nowMs += 1;
  assert.equal(scene.overdue, "stalled client");
});

Deno.test("relayed: after an answer that is the last, silence has five seconds", async () => {
  const scene = new Scene();
  scene.relayed.secured();
  await scene.inner.end();
  // A body that nobody wants comes for as long as it likes: its client has not read the answer.
  for (let count = 0; count < 100; count++) {
    scene.nowMs += 5_000;
    assert.equal(scene.overdue, undefined);
    await scene.client.push(HELLO);
  }
  scene.relayed.innerClosed();
  scene.nowMs += 5_000;
  await scene.client.push(HELLO);
  assert.equal(scene.overdue, undefined);
  scene.nowMs += 1;
  assert.equal(scene.overdue, "client stays connected", "what it sends now is for nobody");
});

for (const isSecured of [true, false]) {
  const what = isSecured ? "leaves a client its five seconds" : "ends an unfinished handshake";
  Deno.test(`relayed: the end of the inner connection ${what}`, async () => {
    const scene = new Scene();
    if (isSecured) scene.relayed.secured();
    scene.relayed.innerClosed();
    assert.equal(scene.client.isClosed, !isSecured);
    scene.nowMs = 5_000;
    assert.equal(scene.overdue, undefined);
    scene.nowMs = 5_001;
    assert.equal(scene.overdue, isSecured ? "client stays connected" : undefined);
  });
}

const HELLO = new TextEncoder().encode("hello");
const DAY_MS = 24 * 3_600_000;

/** An end that gives what a test pushes. */
class PlayedEnd implements End {
  readonly #given: (Uint8Array | null)[] = [];
  readonly #takesNothing: boolean;
  #changed = Promise.withResolvers<void>();
  isClosed = false;

  constructor(takesNothing: boolean) {
    this.#takesNothing = takesNothing;
  }

  /** Resolves when it was read and passed on. */
  async push(bytes: Uint8Array | null): Promise<void> {
    this.#given.push(bytes);
    this.#changed.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  }

  end(): Promise<void> {
    return this.push(null);
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      const bytes = this.#given.shift();
      if (bytes === null) return null;
      if (bytes !== undefined) return into.set(bytes), bytes.length;
      this.#changed = Promise.withResolvers();
      await this.#changed.promise;
    }
  }

  write({ length }: Uint8Array): Promise<number> {
    return this.#takesNothing ? new Promise<never>(() => {}) : Promise.resolve(length);
  }

  closeWrite(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.isClosed = true;
  }
}

/** A client that is joined to its inner connection at 0 ms, with the limits of production. */
class Scene {
  readonly client: PlayedEnd;
  readonly inner = new PlayedEnd(false);
  readonly relayed: Relayed;
  nowMs = 0;

  constructor({ takesNothing = false }: { readonly takesNothing?: boolean } = {}) {
    this.client = new PlayedEnd(takesNothing);
    const ends = { client: this.client, inner: this.inner };
    this.relayed = new Relayed(ends, { beganAtMs: 0, nowMs: () => this.nowMs });
    this.relayed.known();
    void this.relayed.run(HELLO);
  }

  get overdue(): RelayReason | undefined {
    return this.relayed.overdue(RELAY_LIMITS);
  }
}

const nothing: End = {
  read: () => Promise.resolve(null),
  write: ({ length }) => Promise.resolve(length),
  closeWrite: () => Promise.resolve(),
  close() {},
};
