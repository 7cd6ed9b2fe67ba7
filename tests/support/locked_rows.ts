import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { sharedDatabaseOf } from "./shared_servers.ts";

/** Lets nobody else write rows of a storage's NARs, until it is disposed of. */
export async function lockRows(storage: string): Promise<AsyncDisposable> {
  const connectionString = sharedDatabaseOf(storage);
  if (connectionString === undefined) {
    const database = new DatabaseSync(`${storage}/db.sqlite`);
    database.exec("BEGIN IMMEDIATE");
    return { [Symbol.asyncDispose]: async () => database.close() };
  }
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("BEGIN");
  await client.query("LOCK TABLE nar, pending_file IN SHARE ROW EXCLUSIVE MODE");
  return { [Symbol.asyncDispose]: () => client.end() };
}
