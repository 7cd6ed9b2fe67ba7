import { DatabaseSync } from "node:sqlite";
import { queryPostgres } from "./postgres_programs.ts";
import { sharedDatabaseOf } from "./shared_servers.ts";

/** The silence after which a member whose process has ended is dead. */
const SILENCE_MS = 10_000;

/** As if all members of a storage had last written a heartbeat so much earlier. */
export function silenceMembers(storage: string): void {
  const sql = `UPDATE member SET heartbeat_at_ms = heartbeat_at_ms - ${SILENCE_MS}`;
  const url = sharedDatabaseOf(storage);
  if (url !== undefined) return void queryPostgres(url, sql);
  using database = new DatabaseSync(`${storage}/db.sqlite`);
  database.exec(sql);
}
