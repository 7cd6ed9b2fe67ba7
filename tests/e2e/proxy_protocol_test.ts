import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { proxyHeader } from "../support/proxy_header.ts";
import { requestText } from "../support/raw_http.ts";
import { testSocket } from "../support/test_socket.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const FLAGS = {
  "cache-upstream-url": "http://127.0.0.1:1",
  "log-level": "debug",
  "server-proxy-protocol": "true",
};
const GET = requestText("GET", "/healthz");

Deno.test("PROXY protocol: the log names the client that the header names", async () => {
  await using larder = await startLarder(FLAGS);
  const at = { hostname: "127.0.0.1", port: larder.port };
  for (const from of ["192.0.2.7", "2001:db8::7"]) {
    const header = proxyHeader({ from, port: 4711, facts: new Uint8Array(99) });
    // In pieces, and together with the request.
    const pieces = [header.subarray(0, 5), header.subarray(5, 20), header.subarray(20)];
    for (
      const sent of [[...pieces, Buffer.from(GET)], [Buffer.concat([header, Buffer.from(GET)])]]
    ) {
      assert.match(await answerTo(await Deno.connect(at), sent), /^HTTP\/1\.1 200 /);
    }
    await larder.logged("request", ({ client }) => client === from);
  }
  const local = proxyHeader({ from: "192.0.2.7", port: 1, command: 0 });
  await answerTo(await Deno.connect(at), [local, Buffer.from(GET)]);
  await larder.logged("request", ({ client }) => client === "127.0.0.1");
});

Deno.test("PROXY protocol: a client that it says is of this machine evicts nothing", async () => {
  await using larder = await startLarder(FLAGS);
  const gc = Buffer.from(requestText("POST", "/gc?target=0"));
  for (const change of [{}, { command: 0 }, { family: 0 }]) {
    const header = proxyHeader({ from: "127.0.0.1", port: 1, ...change });
    const answer = await answerTo(
      await Deno.connect({ hostname: "127.0.0.1", port: larder.port }),
      [header, gc],
    );
    assert.match(answer, /^HTTP\/1\.1 403 /);
  }
});

Deno.test("PROXY protocol: without a header of version 2 there is no answer", async () => {
  await using larder = await startLarder(FLAGS);
  const wrong: Readonly<Record<string, string>> = {
    "no PROXY header": GET,
    "PROXY header of version 1; send version 2": `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${GET}`,
  };
  for (const [reason, text] of Object.entries(wrong)) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: larder.port });
    assert.equal(await answerTo(connection, [Buffer.from(text)]), "");
    await larder.logged("connections closed", (line) => line["reason"] === reason);
  }
});

Deno.test("PROXY protocol: a proxy that is not trusted gets no answer", async () => {
  const flags = { ...FLAGS, "server-trusted-proxies": "192.0.2.0/24" };
  await using larder = await startLarder(flags);
  const sent = [proxyHeader({ from: "192.0.2.7", port: 1 }), Buffer.from(GET)];
  assert.equal(
    await answerTo(await Deno.connect({ hostname: "127.0.0.1", port: larder.port }), sent),
    "",
  );
  const reason = "PROXY header of an untrusted address";
  await larder.logged("connections closed", (line) => line["reason"] === reason);
});

testUnless(programsMissing("openssl"), "PROXY protocol: in front of TLS, too", async () => {
  using certificate = new OwnCertificate();
  await using larder = await startLarder({
    ...FLAGS,
    "server-tls-cert": certificate.caFile,
    "server-tls-key": certificate.keyFile,
  });
  const gc = requestText("POST", "/gc?target=0");
  for (const [at, from] of ["192.0.2.7", "2001:db8::7", "127.0.0.1"].entries()) {
    const plain = await Deno.connect({ hostname: "127.0.0.1", port: larder.port });
    const header = proxyHeader({ from, port: 1 });
    // The second one leaves in two pieces.
    if (at === 1) await plain.write(header.subarray(0, 9));
    await plain.write(header.subarray(at === 1 ? 9 : 0));
    const hostname = "127.0.0.1";
    const secure = await Deno.startTls(plain, { hostname, caCerts: [certificate.pems.cert] });
    const isLocal = from === "127.0.0.1";
    const answer = await answerTo(secure, [Buffer.from(isLocal ? gc : GET)]);
    assert.match(answer, isLocal ? /^HTTP\/1\.1 403 / : /^HTTP\/1\.1 200 /);
    await larder.logged("request", ({ client }) => client === from);
  }
});

Deno.test("PROXY protocol: over the Unix socket, too", async () => {
  using socket = testSocket();
  const flags: LarderFlags = { ...FLAGS, "server-addr": `unix:${socket.path}` };
  await using larder = await startLarder(flags);
  const connection = await Deno.connect({ transport: "unix", path: socket.path });
  const sent = [proxyHeader({ from: "192.0.2.7", port: 1 }), Buffer.from(GET)];
  assert.match(await answerTo(connection, sent), /^HTTP\/1\.1 200 /);
  await larder.logged("request", ({ client }) => client === "192.0.2.7");
});

/** All that comes back; nothing if the connection is closed or reset. */
async function answerTo(connection: Deno.Conn, pieces: readonly Uint8Array[]): Promise<string> {
  try {
    for (const piece of pieces) await connection.write(piece);
    // It closes the connection at its end.
    return await new Response(connection.readable).text();
  } catch {
    return "";
  } finally {
    closeAgain(connection);
  }
}

function closeAgain(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
