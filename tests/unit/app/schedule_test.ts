import assert from "node:assert/strict";
import { startSchedule } from "../../../src/app/chores.ts";
import { schedule } from "../../../src/config/kinds/schedule.ts";

for (const text of ["@every 10ms", "* * * * * *"]) {
  Deno.test(`schedule: "${text}" comes again and again until it is disposed of`, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let count = 0;
    {
      using _job = startSchedule({ schedule: schedule.parse(text), timezone: "Local" }, () => {
        if (++count === 2) resolve();
      });
      await promise;
    }
    assert.equal(count, 2);
  });
}
