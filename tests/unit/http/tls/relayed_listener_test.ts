import assert from "node:assert/strict";
import { RelayedListener } from "../../../../src/http/tls/tls_listener.ts";
import { type Link, linkOf } from "../../../../src/http/tls/link.ts";
import { LinkClients } from "../../../../src/http/tls/worker_relay.ts";
import { eventually } from "../../../support/eventually.ts";
import { programsMissing, testUnless } from "../../../support/program.ts";
import { OwnCertificate } from "../../../support/tls_front.ts";

const CLIENT: Deno.NetAddr = { transport: "tcp", hostname: "192.0.2.7", port: 4711 };

testUnless(
  programsMissing("openssl"),
  "relayed listener: a program that is not the relay is not taken, and given up",
  async () => {
    using certificate = new OwnCertificate();
    const inner = Deno.listenTls({ hostname: "127.0.0.1", port: 0, ...certificate.pems });
    const accepted: Link[] = [];
    const forgotten: Link[] = [];
    const clients = new LinkClients<Deno.NetAddr>(() => {});
    using listener = new RelayedListener(inner, {
      accepted(link, known) {
        accepted.push(link);
        clients.accepted(link, known);
      },
      forget: (link) => void forgotten.push(link),
      secured() {},
      innerClosed() {},
      abort() {},
    });
    const { hostname, port } = inner.addr as Deno.NetAddr;
    const linkTo = ({ localAddr }: Deno.TcpConn) =>
      linkOf({ relayPort: localAddr.port, innerPort: port });
    const taken = listener.accept();
    using stranger = await Deno.connect({ hostname, port });
    using relay = await Deno.connect({ hostname, port });
    await eventually("both are accepted", () => accepted.length === 2);
    clients.connected(linkTo(relay), CLIENT);
    const socket = await taken;
    assert.equal(socket.remoteAddr, CLIENT);

    for (const _ of "12") listener.closeUnmatched();
    assert.deepEqual(forgotten, [], "the relay may be busy");
    listener.closeUnmatched(performance.now() + 10_000);
    assert.deepEqual(forgotten, [linkTo(stranger)]);
    socket.close();
  },
);
