import { type Clock, SystemClock } from "./clock.ts";
import { type Dice, SYSTEM_DICE } from "./dice.ts";
import { type Files, SYSTEM_FILES } from "./files.ts";

/**
 * The time, the chance and the file system of this process. All of larder finds them here, and
 * nowhere else. So a test that plays them plays them for every part, however deep, and for each
 * member of a cluster: one world has one time, one source of chance and one tree of files.
 */
export let clock: Clock = new SystemClock();
export let dice: Dice = SYSTEM_DICE;
export let files: Files = SYSTEM_FILES;

export interface PlayedRuntime {
  readonly clock?: Clock;
  readonly dice?: Dice;
  readonly files?: Files;
}

/** Plays them until the result is disposed of. Call it before the parts are built. */
export function playRuntime(played: PlayedRuntime): Disposable {
  const before = { clock, dice, files };
  ({ clock, dice, files } = { ...before, ...played });
  return {
    [Symbol.dispose]() {
      ({ clock, dice, files } = before);
    },
  };
}
