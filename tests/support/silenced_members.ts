import { DatabaseSync } from "node:sqlite";

/** The silence after which a member whose process has ended is dead. */
const SILENCE_MS = 10_000;

/** As if all members of a storage had last written a heartbeat so much earlier. */
export function silenceMembers(storage: string): void {
  using database = new DatabaseSync(`${storage}/db.sqlite`);
  database.prepare("UPDATE member SET heartbeat_at_ms = heartbeat_at_ms - ?").run(SILENCE_MS);
}
