import { clock, files } from "../runtime/current.ts";
import { counted, formatBytes } from "./format_units.ts";

/** A disk answers in milliseconds, and a mount whose server is gone never. */
const ANSWER_MAX_MS = 5_000;

/** A chain of certificates has some 10 KiB, and a key has less. */
const FILE_BYTES_MAX = 1 << 20;

/**
 * The text of a key or certificate, read beside the thread that answers. Regular files only: a FIFO
 * would hang, and a device may have no end.
 */
export async function readNamedFile(path: string): Promise<string> {
  const { isFile, size } = await files.stat(path);
  if (!isFile) throw new Error("it is no regular file");
  if (size > FILE_BYTES_MAX) throw new Error(`it is over ${formatBytes(FILE_BYTES_MAX)}`);
  return await files.readTextFile(path);
}

/** The result of work on files. Throws at a time limit; the work may then hang for good. */
export async function answerInTime<Value>(
  work: Promise<Value>,
  limitMs: number = ANSWER_MAX_MS,
): Promise<Value> {
  const done = await clock.within(work.then((value) => ({ value })), limitMs);
  if (done !== undefined) return done.value;
  const limit = counted(Math.ceil(limitMs / 1_000), "second");
  throw new Error(`the file system did not answer within ${limit}`);
}
