import assert from "node:assert/strict";
import { MemoryAllowance } from "../../../src/base/memory_allowance.ts";
import { decodedBody, holdsObject } from "../../../src/cache/upload/upload_body.ts";
import { FileMeasure } from "../../../src/cache/upload/file_measure.ts";
import type { BodyOrder, VerifyOrder } from "../../../src/cache/verify/nar_verifier.ts";

const ADDRESSES = ["2001:db8::1", "2001:db8:0:0:ff::2", "2001:db8:0:1::1", "192.0.2.1"];
const NETWORKS = ["2001:db8:0:0", "2001:db8:0:0", "2001:db8:0:1", "192.0.2.1"];

Deno.test("upload turns: NARs of one IPv6 network are of one client", () => {
  const clients: unknown[] = [];
  const start = ({ turns }: VerifyOrder) => {
    clients.push(turns?.client);
    const measure = new Promise<never>(() => {});
    return { measure, grown() {}, [Symbol.dispose]() {} };
  };
  for (const peer of ADDRESSES) {
    const client = { peer, signal: new AbortController().signal };
    new FileMeasure({ start }, { path: "/", compression: "xz", length: 1, client });
  }
  assert.deepEqual(clients, NETWORKS);
});

Deno.test("upload turns: encoded bodies of one IPv6 network are of one client", async () => {
  const clients: unknown[] = [];
  const bytes = new Uint8Array(1);
  const decoder = {
    decode: ({ length: _ }: Uint8Array, { turns, result }: BodyOrder) => {
      clients.push(turns.client);
      return Promise.resolve(
        result === "bytes" ? { kind: result, bytes } : { kind: result, isObject: true },
      );
    },
  };
  const body = { bytes, coding: "xz", bytesMax: 1 } as const;
  for (const peer of ADDRESSES) {
    const client = { peer, signal: new AbortController().signal };
    using share = new MemoryAllowance(10).share();
    await decodedBody(decoder, { ...body, client, share });
    await holdsObject(decoder, { ...body, client });
  }
  assert.deepEqual(clients, NETWORKS.flatMap((network) => [network, network]));
});

Deno.test("upload turns: the decoding of a body ends with its client", async () => {
  const gone = new AbortController();
  const decoder = {
    decode: (_: Uint8Array, __: BodyOrder, signal?: AbortSignal) => {
      assert.ok(signal);
      gone.abort(new Error("gone"));
      return Promise.reject(signal.reason);
    },
  };
  const client = { signal: new AbortController().signal, hungUp: gone.signal };
  const body = { bytes: new Uint8Array(1), coding: "xz", bytesMax: 1, client } as const;
  const cut = { fault: "cut", message: "expected a client that waits" };
  await assert.rejects(holdsObject(decoder, body), cut);
});
