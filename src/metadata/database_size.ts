/** The bytes of a database. */
export interface DatabaseSize {
  readonly bytes: number;
  /** The part that takes room from the NAR files below the size limit. */
  readonly countedBytes: number;
}

/** Tells the size of its own rows. */
export interface DatabaseMeter {
  /** Cheap enough for each look at the stored bytes; some seconds old at most. */
  databaseSize(): Promise<DatabaseSize>;
}

/** Bytes of a database that do not count: some ten thousand narinfos. */
export const UNCOUNTED_BYTES = 16 << 20;

/** The part of the size limit above which rows without NAR files go before their time. */
export const DATABASE_SHARE = 1 / 10;
