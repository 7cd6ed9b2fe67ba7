import { clock, files } from "../runtime/current.ts";
import { WORKER_THREADS } from "../runtime/threads.ts";
import { counted, formatBytes } from "./format_units.ts";
import type { PipeAnswer, PipeOrder } from "./pipe_worker.ts";

/** A disk answers in milliseconds, and a mount whose server is gone never. */
const ANSWER_MAX_MS = 5_000;

/** The time for the program behind a pipe, as in `<(command)`: it may ask for a password. */
const PIPE_MAX_MS = 60_000;

/** A chain of certificates has some 10 KiB, and a key has less. */
const FILE_BYTES_MAX = 1 << 20;

/** The longest text of a configuration, a secret or a bundle of certificates. */
const TEXT_BYTES_MAX = 64 << 20;

/** The rights of the thread that reads a pipe. */
const FILES_ALONE: Deno.PermissionOptionsObject = {
  read: "inherit",
  write: false,
  net: false,
  env: false,
  sys: false,
  run: false,
  ffi: false,
};

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

/**
 * The text of a file that an option names, read beside this thread and in time. It may be a pipe. A
 * device has no end, so the text has a bound.
 */
export async function readNamedText(path: string): Promise<string> {
  const { isFile, size } = await answerInTime(files.stat(path));
  if (!isFile) return await readPipe(path);
  if (size > TEXT_BYTES_MAX) throw new Error(`it is larger than ${formatBytes(TEXT_BYTES_MAX)}`);
  return await answerInTime(files.readTextFile(path));
}

/** False only if certainly absent: reading reports all other errors. */
export async function namedFileExists(path: string): Promise<boolean> {
  try {
    await answerInTime(files.stat(path));
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

async function readPipe(path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const thread = WORKER_THREADS.start(new URL("./pipe_worker.ts", import.meta.url), FILES_ALONE);
  thread.onmessage = ({ data }) => {
    const answer = data as PipeAnswer;
    if ("text" in answer) resolve(answer.text);
    else reject(new Error(answer.error));
  };
  thread.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  thread.postMessage({ path, bytesMax: TEXT_BYTES_MAX } satisfies PipeOrder);
  const text = await clock.within(promise, PIPE_MAX_MS).finally(() => thread.terminate());
  if (text !== undefined) return text;
  throw new Error(`nobody wrote it whole within ${counted(PIPE_MAX_MS / 1_000, "second")}`);
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
