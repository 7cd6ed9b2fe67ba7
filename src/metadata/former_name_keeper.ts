import type { NarName, NarStem } from "../nix/nar_name.ts";

export interface FormerNameFinder {
  /** The NAR that clients of another larder remember by this stem; `undefined`: none. */
  narOfFormerName(stem: NarStem): Promise<NarName | undefined>;
}

/** Keeps the names by which clients of another larder remember a NAR. They go with its row. */
export interface FormerNameKeeper extends FormerNameFinder {
  /** The stems that lead to the NAR, in alphabetical order. */
  formerNamesOf(narName: NarName): Promise<readonly NarStem[]>;
  /** Leads the stems to the NAR from now on. Without effect where it has no row. */
  putFormerNames(narName: NarName, stems: readonly NarStem[]): Promise<void>;
}
