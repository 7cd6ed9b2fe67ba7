/** SQLite's primary result codes that larder tells apart: https://www.sqlite.org/rescode.html */
export const SQLITE_BUSY = 5;
export const SQLITE_IOERR = 10;
export const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_CONSTRAINT = 19;

/** The primary result code of an error of `node:sqlite`; `undefined` for any other error. */
export function resultCodeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
}
