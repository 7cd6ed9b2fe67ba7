import assert from "node:assert/strict";
import { FairTurns } from "../../../../src/http/server/http_server.ts";
import { lastTurnOver } from "../../../support/last_turn_over.ts";

const CROWD = 200;

Deno.test("fair turns: few connections do not wait for each other", () => {
  assert.equal(new FairTurns(() => 64).areCrowded, false);
  assert.equal(new FairTurns(() => 65).areCrowded, true);
});

Deno.test(
  "fair turns: in a crowd operations begin in the order of arrival, all of them",
  async () => {
    const turns = new FairTurns(() => CROWD);
    const begun: number[] = [];
    const order = [...Array(3 * CROWD).keys()];
    await Promise.all(order.map((at) => turns.run(async () => void begun.push(at))));
    assert.deepEqual(begun, order);
    await lastTurnOver();
  },
);

Deno.test(
  "fair turns: operations without a ready socket begin a few at a time",
  async () => {
    const turns = new FairTurns(() => CROWD);
    const sockets = Promise.withResolvers<void>();
    let begun = 0;
    const running = Array.from({ length: CROWD }, () => (
      turns.run(() => {
        begun++;
        return sockets.promise;
      })
    ));
    const seen = new Set<number>();
    while (begun < CROWD) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      seen.add(begun);
    }
    const steps = [...seen].sort((a, b) => a - b);
    assert.ok(steps.length >= 4, `${steps}`);
    sockets.resolve();
    await Promise.all(running);
    await lastTurnOver();
  },
);

Deno.test("fair turns: an operation that fails lets the others go on", async () => {
  const turns = new FairTurns(() => CROWD);
  const ended = await Promise.allSettled(
    Array.from({ length: CROWD }, (_, at) => (
      turns.run(async () => {
        if (at % 2 === 0) throw new Error("the client has left");
      })
    )),
  );
  assert.equal(ended.filter(({ status }) => status === "fulfilled").length, CROWD / 2);
  await lastTurnOver();
});
