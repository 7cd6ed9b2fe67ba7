import assert from "node:assert/strict";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { resetConnections, type Resets } from "../support/resets.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const NO_UPSTREAM = { "cache-upstream-url": [] };
const BETWEEN_CLIENTS_MS = 50;

const ATTACKS: Readonly<Record<string, Resets>> = {
  "300 resets": { count: 300 },
  "60 resets a second": { count: 180, perSecond: 60 },
};

for (const [attack, resets] of Object.entries(ATTACKS)) {
  Deno.test(`resets: during ${attack} every client is answered`, async () => {
    await using larder = await startLarder(NO_UPSTREAM);
    await checkClients(larder, resets, () => Deno.connect(placeOf(larder)));
  });

  testUnless(
    programsMissing("openssl"),
    `resets: during ${attack} every client of HTTPS is answered`,
    async () => {
      using certificate = new OwnCertificate();
      await using larder = await startLarder({
        ...NO_UPSTREAM,
        "server-tls-cert": certificate.caFile,
        "server-tls-key": certificate.keyFile,
      });
      const trust = { caCerts: [certificate.pems.cert] };
      await checkClients(larder, resets, () => Deno.connectTls({ ...placeOf(larder), ...trust }));
    },
  );
}

/** One client after the other, while connections are reset and for a moment after that. */
async function checkClients(
  larder: LarderProcess,
  resets: Resets,
  connect: () => Promise<Deno.Conn>,
): Promise<void> {
  let isOver = false;
  const attack = resetConnections(larder.port, resets).then(() => isOver = true);
  let answered = 0;
  do {
    using client = await connect();
    await askHealth(client);
    answered++;
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_CLIENTS_MS));
  } while (!isOver || answered < 10);
  await attack;
  const closed = larder.lines.filter(({ msg }) => msg === "connections closed");
  assert.deepEqual(closed.filter(({ level }) => level === "warn"), [], "handles did not run out");
}

async function askHealth(client: Deno.Conn): Promise<void> {
  await client.write(new TextEncoder().encode("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
  const bytes = new Uint8Array(1_000);
  const read = await client.read(bytes) ?? 0;
  assert.match(new TextDecoder().decode(bytes.subarray(0, read)), /^HTTP\/1\.1 200 OK\r\n/);
}

function placeOf({ port }: LarderProcess): Deno.ConnectOptions {
  return { hostname: "127.0.0.1", port };
}
