import assert from "node:assert/strict";
import { clock } from "../../../../src/runtime/current.ts";
import { programsMissing, testUnless } from "../../../support/program.ts";
import { OwnCertificate } from "../../../support/tls_front.ts";

/** Deno closes a TCP connection of its own within a millisecond. */
const CLOSES_WITHIN_MS = 500;

testUnless(
  programsMissing("openssl"),
  // Once this fails, try a plain `Deno.listenTls` in place of `src/http/tls`. Its other tests show
  // whether Deno also ends connections whose client takes nothing, and changes certificates.
  "the relay has its reason: Deno keeps a TLS connection open that is closed mid-handshake",
  async () => {
    using certificate = new OwnCertificate();
    using listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, ...certificate.pems });
    const { hostname, port } = listener.addr;
    const accepted = listener.accept();
    using client = await Deno.connect({ hostname, port });
    (await accepted).close();
    const reading = client.read(new Uint8Array(1));
    assert.equal(await clock.within(reading, CLOSES_WITHIN_MS), undefined, "Deno has closed it");
    await client.closeWrite();
    await reading;
  },
);
