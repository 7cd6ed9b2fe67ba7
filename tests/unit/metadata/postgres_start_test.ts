import assert from "node:assert/strict";
import { Database } from "../../../src/metadata/postgres/database.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { freePort } from "../../support/free_port.ts";

/** By how much time goes on at each look: no test waits half a minute here. */
const STEP_MS = 5_000;

Deno.test("Database: a server that stays away ends the start, with its place and why", async () => {
  const lines: string[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(line) });
  const place = `127.0.0.1:${freePort()}/larder`;
  await using database = new Database({ url: `postgres://larder:secret@${place}`, log });
  const { now } = performance;
  using _restored = { [Symbol.dispose]: () => void (performance.now = now) };
  let ms = 0;
  performance.now = () => ms += STEP_MS;

  await assert.rejects(database.connected(), (error) => {
    assert.match(String(error), /Cannot open database postgres:\/\/.*larder.*refused/i);
    assert.ok(String(error).includes(place), String(error));
    assert.ok(!String(error).includes("secret"), String(error));
    return true;
  });

  const told = lines.filter((line) => line.includes("database does not answer"));
  assert.equal(told.length, 1, lines.join(""));
  assert.ok(ms >= 30_000, "it waits for a server that starts too");
});
