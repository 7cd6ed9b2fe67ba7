import { clock } from "../../src/runtime/current.ts";

/** Resolves once the timer of the last fair turn, which outlives the operations, has fired. */
export async function lastTurnOver(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await clock.soonOver();
    await clock.turn();
  }
}
