import assert from "node:assert/strict";
import { isOfThisMachine, peerAddress } from "../../../../src/http/message/message.ts";

const PEERS: readonly (readonly [hostname: string, peer: string, isOfThisMachine: boolean])[] = [
  ["127.0.0.1", "127.0.0.1", true],
  ["127.255.0.9", "127.255.0.9", true],
  ["::1", "::1", true],
  ["::ffff:127.0.0.1", "127.0.0.1", true],
  ["::ffff:192.0.2.7", "192.0.2.7", false],
  ["192.0.2.7", "192.0.2.7", false],
  ["128.0.0.1", "128.0.0.1", false],
  ["2001:db8::127", "2001:db8::127", false],
  ["fe80::1%2", "fe80::1%2", false],
];

Deno.test("peer: an address without its port, and whether it is of this machine", () => {
  for (const [hostname, peer, isOurs] of PEERS) {
    const found = peerAddress({ transport: "tcp", hostname, port: 127 });
    assert.deepEqual([found, isOfThisMachine(found)], [peer, isOurs]);
  }
});

Deno.test("peer: a Unix socket is of this machine, an unknown peer is not", () => {
  const peer = peerAddress({ transport: "unix", path: "/run/larder.sock" });
  assert.deepEqual([peer, isOfThisMachine(peer)], ["unix", true]);
  assert.equal(isOfThisMachine(undefined), false);
});
