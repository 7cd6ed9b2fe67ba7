import assert from "node:assert/strict";
import { type End, Relayed } from "../../../../src/http/tls/relayed.ts";

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

const nothing: End = {
  read: () => Promise.resolve(null),
  write: ({ length }) => Promise.resolve(length),
  closeWrite: () => Promise.resolve(),
  close() {},
};
