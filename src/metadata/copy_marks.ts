/** Tells a database that is only a copy of another from one that a larder uses. */
export interface CopyMarks {
  /** What the database is a copy of; `undefined` once a larder has opened it for its own use. */
  originalName(): Promise<string | undefined>;
  /** `undefined`: it is no copy any more. */
  markCopy(originalName: string | undefined): Promise<void>;
}
