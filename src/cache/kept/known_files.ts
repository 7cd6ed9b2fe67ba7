import { LRUCache } from "lru-cache";
import type { Seal, StoredName } from "../../nix/stored_name.ts";

/** Some 10 MB of names and seals at most. What is forgotten is hashed again, nothing else. */
const ENTRIES_MAX = 50_000;

/** Whether the bytes of a file are those that were verified before it was kept. */
export type Verdict = "right" | "wrong";

interface Known {
  readonly seal: Seal;
  readonly verdict: Verdict;
}

/** What this process has found in stored files whose rows do not say it, or not yet. */
export class KnownFiles {
  readonly #entries = new LRUCache<StoredName, Known>({ max: ENTRIES_MAX });

  learn(at: StoredName, seal: Seal, verdict: Verdict): void {
    this.#entries.set(at, { seal, verdict });
  }

  /** `undefined` of a file that was never hashed, or has been changed since. */
  verdictOf(at: StoredName, seal: Seal): Verdict | undefined {
    const known = this.#entries.get(at);
    return known?.seal === seal ? known.verdict : undefined;
  }
}
