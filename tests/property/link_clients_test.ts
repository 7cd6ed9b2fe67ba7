import assert from "node:assert/strict";
import fc from "fast-check";
import type { Link } from "../../src/http/tls/link.ts";
import { LinkClients } from "../../src/http/tls/worker_relay.ts";
import { checkProperty } from "../support/property.ts";

/** Ports are few, so that they are used again and again. */
const PORTS = 3;

/** The next event: on which port, and on which side. */
const step = fc.record({
  port: fc.nat({ max: PORTS - 1 }),
  what: fc.constantFrom("connect", "tell", "accept", "close"),
});

interface Connection {
  readonly client: number;
  isTold: boolean;
  isMet: boolean;
  seenAs?: number;
}

checkProperty(
  "link clients: each connection has the client that the relay made it for, or none yet",
  fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const open = new Map<number, Connection & { isAccepted: boolean }>();
    const clients = new LinkClients<number>((link) => {
      const connection = open.get(link);
      assert.ok(connection);
      connection.isMet = true;
    });
    for (const [client, { port, what }] of steps.entries()) {
      const link = port as Link;
      const connection = open.get(port);
      if (what === "connect" && connection === undefined) {
        open.set(port, { client, isTold: false, isAccepted: false, isMet: false });
      } else if (connection === undefined) continue;
      else if (what === "tell" && !connection.isTold) {
        connection.isTold = true;
        clients.connected(link, connection.client);
      } else if (what === "accept" && !connection.isAccepted) {
        connection.isAccepted = true;
        clients.accepted(link, (found) => connection.seenAs = found);
      } else if (what === "close" && connection.isMet) {
        // The relay keeps its end until both sides have met.
        open.delete(port);
        clients.forget(link);
      }
      for (const { client: own, isTold, isAccepted, isMet, seenAs } of open.values()) {
        assert.equal(isMet, isTold && isAccepted);
        assert.equal(seenAs, isMet ? own : undefined);
      }
    }
  }),
);
