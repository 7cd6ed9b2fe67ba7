import type { NamedPin } from "../metadata/metadata_store.ts";

/** A name under which pins roll, and the number of roots that it keeps. */
export interface PinName {
  readonly name: string;
  readonly keep: number;
}

export const NAME_LENGTH_MAX = 100;

/** More are a list of releases, which somebody should pin and unpin by hand. */
export const KEEP_MAX = 100;

/** What a name may be, after "expected". */
export const NAME_FORM =
  `a name such as host/laptop: parts of letters, digits, ".", "_", "-", "+" ` +
  `and "@", each of which begins with a letter or a digit, with "/" between them; ` +
  `at most ${NAME_LENGTH_MAX} characters`;

// All may stand in a path of a URL as they are, and no part is "..".
const NAME_REGEXP = /^[0-9A-Za-z][0-9A-Za-z._+@-]*(?:\/[0-9A-Za-z][0-9A-Za-z._+@-]*)*$/;

export function isPinName(text: string): boolean {
  return text.length <= NAME_LENGTH_MAX && NAME_REGEXP.test(text);
}

export function isKeep(keep: number | undefined): keep is number {
  return keep !== undefined && keep >= 1 && keep <= KEEP_MAX;
}

/** A name with the roots that it holds. */
export interface HeldName extends PinName {
  /** The newest one first. */
  readonly roots: readonly Pick<NamedPin, "storePathHash" | "pinnedAtMs">[];
}

/** `named`: by name, then in the order of pinning. */
export function heldNames(named: readonly NamedPin[]): readonly HeldName[] {
  return [...Map.groupBy(named, ({ name }) => name)].map(([name, pins]) => (
    { name, keep: pins.at(-1)?.keep ?? 0, roots: pins.toReversed() }
  ));
}
