/** Marks that distinguish a copy of a database from one that a larder uses. */
export interface CopyMarks {
  /** Name of the original; `undefined` once a larder has opened the database for its own use. */
  originalName(): Promise<string | undefined>;
  /** `undefined`: it is no copy any more. */
  markCopy(originalName: string | undefined): Promise<void>;
}
