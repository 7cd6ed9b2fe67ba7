import { Failure, reasonOf } from "../../base/failure.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { clock, files } from "../../runtime/current.ts";

/** Paths of PEM files. */
export interface PemPaths {
  readonly certPath: string;
  readonly keyPath: string;
}

export interface Pems {
  readonly cert: string;
  readonly key: string;
}

/** A disk answers in milliseconds, and a mount whose server is gone never. */
const READ_MAX_MS = 5_000;

/** A chain of certificates has some 10 KiB. */
const PEM_BYTES_MAX = 1 << 20;

/**
 * Reads a certificate and its key beside the thread that answers, within a time limit. A path may
 * hang: a FIFO, or a mount whose server is gone. Then one read hangs, and no other one begins.
 */
export class PemFiles {
  readonly #paths: PemPaths;
  readonly #readMaxMs: number;
  #reading: Promise<Pems> | undefined;

  constructor(paths: PemPaths, readMaxMs = READ_MAX_MS) {
    this.#paths = paths;
    this.#readMaxMs = readMaxMs;
  }

  /** Throws a Failure that names an unusable file, or both that do not answer. */
  async read(): Promise<Pems> {
    const reading = this.#reading ??= this.#begin();
    const pems = await clock.within(reading, this.#readMaxMs);
    if (pems !== undefined) return pems;
    const { certPath, keyPath } = this.#paths;
    const limit = counted(Math.ceil(this.#readMaxMs / 1_000), "second");
    const problem = `the file system did not answer within ${limit}`;
    throw new Failure("broken", `Cannot read ${certPath} and ${keyPath}: ${problem}`);
  }

  async #begin(): Promise<Pems> {
    const { certPath, keyPath } = this.#paths;
    try {
      return {
        cert: await readPem("--server-tls-cert", certPath, "a certificate"),
        key: await readPem("--server-tls-key", keyPath, "its private key"),
      };
    } finally {
      this.#reading = undefined;
    }
  }
}

async function readPem(option: string, path: string, content: string): Promise<string> {
  try {
    // A FIFO would hang, and a device may have no end.
    const { isFile, size } = await files.stat(path);
    if (!isFile) throw new Error("it is no regular file");
    if (size > PEM_BYTES_MAX) throw new Error(`it is over ${formatBytes(PEM_BYTES_MAX)}`);
    return await files.readTextFile(path);
  } catch (error) {
    const expected = `expected a PEM file with ${content}`;
    throw new Failure("broken", `Cannot use ${option} ${path}: ${reasonOf(error)}; ${expected}`);
  }
}
