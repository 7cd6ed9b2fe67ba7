import assert from "node:assert/strict";
import { warnOfMembers } from "../../../src/app/announce.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const REDIS = "--cache-redis-addrs=r.example";
const POSTGRES = "--cache-database-url=postgres://larder@d.example/larder";
const LOCKS = "locks-of-one-machine";

const rows: readonly (readonly [args: readonly string[], warned: readonly string[]])[] = [
  [[], []],
  [[POSTGRES], []],
  [[REDIS], [LOCKS]],
  [[REDIS, POSTGRES], []],
];

for (const [args, warned] of rows) {
  const outcome = warned.length === 0 ? "nothing" : warned.join(", ");
  Deno.test(`members: with ${args.join(" ") || "no option"} it warns of ${outcome}`, async () => {
    const { settings } = await readSettings(inputsOf({ args }));
    const said: string[] = [];
    warnOfMembers(settings, { event: (kind) => void said.push(kind) });
    assert.deepEqual(said, warned);
  });
}
