import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { queryPostgres } from "../support/postgres_programs.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const OBJECT = makeStoreObject({ name: "pulled" });

const unavailable = postgresMissing || programsMissing("openssl");
const certificate = unavailable === "" ? new OwnCertificate() : undefined;
const server = unavailable === "" ? PostgresServer.start(certificate) : undefined;
globalThis.addEventListener("unload", () => certificate?.[Symbol.dispose]());

/** A larder whose database has these parameters in its URL. */
async function withDatabase(
  parameters: string,
  used: (larder: LarderProcess, databaseUrl: string) => Promise<void>,
): Promise<void> {
  assert.ok(server);
  const url = await server.createMigrated();
  using storage = tempFolder();
  await using upstream = await fakeUpstream({ objects: [OBJECT], stored: true });
  await using larder = await startLarder({
    "cache-storage-local": storage.path,
    "cache-database-url": `${url}?${parameters}`,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  });
  await used(larder, url);
}

testUnless(unavailable, "postgres by TLS: a server of the named authority is used", async () => {
  const parameters = `sslmode=verify-full&sslrootcert=${certificate?.caFile}`;
  await withDatabase(parameters, async ({ port }, url) => {
    const narinfo = await servedNarinfo(port, OBJECT.storePathHash);
    assert.equal((await servedNar(port, narinfo)).status, 200);
    const [plain] = queryPostgres(
      url,
      "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) " +
        "WHERE application_name = 'larder' AND NOT ssl",
    );
    assert.equal(plain, "0");
  });
});

testUnless(
  unavailable,
  "postgres by TLS: a server of no known authority ends the start",
  async () => {
    using other = new OwnCertificate();
    for (const parameters of ["", `&sslrootcert=${other.caFile}`]) {
      await assert.rejects(
        withDatabase(`sslmode=verify-full${parameters}`, () => Promise.resolve()),
        /Cannot open database .*certificate.*; name its authority: sslrootcert=FILE in the URL/,
      );
    }
  },
);
