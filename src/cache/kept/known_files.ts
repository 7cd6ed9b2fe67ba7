import { LRUCache } from "lru-cache";
import type { NarName } from "../../nix/nar_name.ts";
import { type FileIdentity, isSameIdentity } from "../../storage/nar_store.ts";

/** Some 20 MB of names and numbers at most. What is forgotten is checked again, nothing else. */
const ENTRIES_MAX = 100_000;

/** Whether the bytes of a file are those that were verified before it was kept. */
export type Verdict = "right" | "wrong";

interface Known {
  readonly identity: FileIdentity;
  readonly verdict: Verdict;
}

/** The kept NAR files that this process has seen the bytes of, and what it found. */
export class KnownFiles {
  readonly #entries = new LRUCache<NarName, Known>({ max: ENTRIES_MAX });

  learn(narName: NarName, identity: FileIdentity, verdict: Verdict): void {
    this.#entries.set(narName, { identity, verdict });
  }

  /** `undefined` of a file that was never seen, or has been changed since. */
  verdictOf(narName: NarName, identity: FileIdentity): Verdict | undefined {
    const known = this.#entries.get(narName);
    return known !== undefined && isSameIdentity(known.identity, identity)
      ? known.verdict
      : undefined;
  }
}
