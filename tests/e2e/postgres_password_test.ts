import assert from "node:assert/strict";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless } from "../support/program.ts";
import { tempFolder } from "../support/temp_folder.ts";

const PASSWORD = "a password: of several\\words";

const server = PostgresServer.start();
server?.demandPassword(PASSWORD);

/** A URL without a password. */
function databaseUrl(): URL {
  assert.ok(server);
  const url = new URL(server.createDatabase());
  url.password = "";
  return url;
}

/** Starting makes the tables. */
async function assertStarts(
  flags: LarderFlags,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using larder = await startLarder(
    { "cache-database-url": databaseUrl().href, ...flags },
    environment,
  );
  assert.equal((await (await fetch(`${larder.url}/pins`)).text()).trim(), "[]");
  assert.ok(!JSON.stringify(larder.lines).includes(PASSWORD));
}

testUnless(postgresMissing, "postgres: a password comes from its option", async () => {
  await assertStarts({ "cache-database-password": PASSWORD });
});

testUnless(postgresMissing, "postgres: a password comes from its option's file", async () => {
  using folder = tempFolder();
  Deno.writeTextFileSync(`${folder.path}/password`, `${PASSWORD}\n`);
  await assertStarts({ "cache-database-password-file": `${folder.path}/password` });
});

testUnless(postgresMissing, "postgres: a password comes from PGPASSFILE", async () => {
  using folder = tempFolder();
  const file = `${folder.path}/pgpass`;
  const escaped = PASSWORD.replaceAll("\\", "\\\\").replaceAll(":", "\\:");
  Deno.writeTextFileSync(file, `127.0.0.1:*:*:larder:${escaped}\n`, { mode: 0o600 });
  await assertStarts({}, { PGPASSFILE: file });
});

testUnless(
  postgresMissing,
  "postgres: no password ends the start, which names the options",
  async () => {
    await assert.rejects(assertStarts({}), (error) => {
      assert.match(
        String(error),
        /Cannot open database .*: the server wants a password; give it in/,
      );
      for (const name of ["the URL", "--cache-database-password", "-file", "PGPASSFILE"]) {
        assert.ok(String(error).includes(name), name);
      }
      return true;
    });
  },
);

testUnless(postgresMissing, "postgres: a wrong password ends the start, unsaid", async () => {
  await assert.rejects(assertStarts({ "cache-database-password": "a-wrong-one" }), (error) => {
    assert.match(String(error), /Cannot open database .*password authentication failed/);
    assert.match(String(error), /check the user and the password; .* --cache-database-password/);
    assert.ok(!String(error).includes("a-wrong-one"));
    return true;
  });
});
