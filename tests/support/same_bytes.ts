import assert from "node:assert/strict";
import { Buffer } from "node:buffer";

/**
 * Fails unless the bytes are the expected ones, and says where they begin to differ. `deepEqual`
 * would print millions of bytes, which takes gigabytes of memory.
 */
export function assertSameBytes(actual: Uint8Array | undefined, expected: Uint8Array): void {
  assert.ok(actual !== undefined, "there are no bytes");
  if (Buffer.compare(actual, expected) === 0) return;
  const at = expected.findIndex((byte, index) => byte !== actual[index]);
  const place = at < 0 ? expected.length : at;
  assert.fail(`${actual.length} bytes, of ${expected.length}, differ from byte ${place} on`);
}
