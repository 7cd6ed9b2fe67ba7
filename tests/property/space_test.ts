import assert from "node:assert/strict";
import fc from "fast-check";
import { type OpenModelDatabase, openSqliteModel } from "../support/model_database.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { PostgresModel } from "../support/postgres_model.ts";
import { checkProperty } from "../support/property.ts";
import { smallWorld } from "../support/small_world.ts";
import { SPACE_COMMANDS } from "../support/space_commands.ts";
import { SpaceModel } from "../support/space_model.ts";
import { SpaceSystem } from "../support/space_system.ts";

/** From where some NAR files alone hardly fit up to where all of them do. */
const LIMIT_KILOBYTES = { min: 70, max: 330 };

const COMMANDS_MAX = 20;

/**
 * A run takes some 30 ms of a core, with two members some 80. The worlds of the simulation hold the
 * same on new seeds each time, and the longer search has its nights.
 */
const RUNS = Deno.env.get("FUZZ_MS") ? 1_200 : 160;

checkProperty(
  "space: whatever the requests and whenever it dies, pins, limit, order and files hold",
  playedBy(1),
  { runs: RUNS },
);

checkProperty(
  "space: of two on one storage, limit, pins, order and files hold through deaths",
  playedBy(2),
  { runs: Math.ceil(RUNS / 3) },
);

checkProperty(
  "space: of three on one storage, limit, pins, order and files hold through deaths",
  playedBy(3),
  { runs: Math.ceil(RUNS / 10) },
);

const postgres = PostgresServer.start();
let url: Promise<string> | undefined;

/** A run takes a second or more: each call goes to the server and back. */
const POSTGRES_RUNS = Math.ceil(RUNS / 100);

for (const members of [2, 3]) {
  checkProperty(
    `space: of ${members} on one PostgreSQL, limit, pins, order and files hold through deaths`,
    playedBy(members, async (play) => {
      assert.ok(postgres);
      await using model = new PostgresModel(await (url ??= postgres.createMigrated()));
      await model.empty();
      await play(model.connect);
    }),
    { runs: POSTGRES_RUNS, excuse: postgresMissing, shrinks: false },
  );
}

/** So many larders on one storage, which run the drawn commands. */
function playedBy(
  memberCount: number,
  within: (play: (open: OpenModelDatabase) => Promise<void>) => Promise<void> = (play) =>
    play(openSqliteModel),
) {
  return fc.asyncProperty(
    smallWorld,
    fc.integer(LIMIT_KILOBYTES),
    fc.commands(SPACE_COMMANDS, { maxCommands: COMMANDS_MAX, size: "max" }),
    async (world, limitKilobytes, commands) => {
      await within(async (open) => {
        await using system = new SpaceSystem(world, limitKilobytes * 1_000, memberCount, open);
        await system.start();
        await fc.asyncModelRun(() => ({ model: new SpaceModel(world), real: system }), commands);
      });
    },
  );
}
