import { DatabaseSync } from "node:sqlite";

/** Overwrites the beginning of the first page of a table in an SQLite file that nobody has open. */
export function damageTable(path: string, table: string): void {
  const { rootPage, pageBytes } = placeOf(path, table);
  using file = Deno.openSync(path, { write: true });
  file.seekSync((rootPage - 1) * pageBytes, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array(64).fill(0xff));
}

function placeOf(path: string, table: string) {
  using database = new DatabaseSync(path);
  const row = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(table);
  const { page_size } = database.prepare("PRAGMA page_size").get() ?? {};
  return { rootPage: Number(row?.["rootpage"]), pageBytes: Number(page_size) };
}
