import type { Clock } from "./clock.ts";
import { type Dice, SYSTEM_DICE } from "./dice.ts";
import { SystemClock } from "./system_clock.ts";

/**
 * The time and the chance of this process. All of larder reads them here, and nowhere else. So a
 * test that plays them plays them for every part, however deep, and for each member of a cluster:
 * in one world there is one time and one source of chance.
 */
export let clock: Clock = new SystemClock();
export let dice: Dice = SYSTEM_DICE;

/** Plays time and chance until the result is disposed of. Call it before the parts are built. */
export function playRuntime(played: { readonly clock?: Clock; readonly dice?: Dice }): Disposable {
  const before = { clock, dice };
  clock = played.clock ?? clock;
  dice = played.dice ?? dice;
  return {
    [Symbol.dispose]() {
      ({ clock, dice } = before);
    },
  };
}
