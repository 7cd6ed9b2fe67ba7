import type { SQLOutputValue } from "node:sqlite";

/** A row of ncps's database. Integers are bigints. */
export type Row = Readonly<Record<string, SQLOutputValue>>;

/** The lists of the whole database. */
export interface NcpsContents {
  /** The ids of all narinfos: those of pinned closures, then the others, the hottest first. */
  readonly ids: readonly bigint[];
  readonly pins: readonly Row[];
  /** The secret key that ncps made; `undefined` where it was given one in a file. */
  readonly secretKey: string | undefined;
}

/** The rows of one narinfo. */
export interface NcpsEntryRows {
  readonly narinfo: Row;
  readonly references: readonly string[];
  readonly signatures: readonly string[];
  /** The newest NAR file; `undefined` where ncps has none. */
  readonly file: Row | undefined;
  /** The chunks of that file, in its order. */
  readonly chunks: readonly Row[];
}

/** The tables of an ncps, which another program writes: each read has a time limit. */
export interface NcpsTables extends AsyncDisposable {
  /** Rejects with a Failure for anything but the database of an ncps. */
  contents(signal: AbortSignal): Promise<NcpsContents>;
  /** `undefined` where ncps has evicted it meanwhile. Rejects with a Failure for a wrong row. */
  entry(id: bigint, signal: AbortSignal): Promise<NcpsEntryRows | undefined>;
}
