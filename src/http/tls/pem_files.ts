import { Failure, messageOf, reasonOf } from "../../base/failure.ts";
import { answerInTime, readNamedFile } from "../../base/named_file.ts";

/** Paths of PEM files. */
export interface PemPaths {
  readonly certPath: string;
  readonly keyPath: string;
}

export interface Pems {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate and its key beside the thread that answers, within a time limit. A path may
 * hang: a FIFO, or a mount whose server is gone. Then one read hangs, and no other one begins.
 */
export class PemFiles {
  readonly #paths: PemPaths;
  readonly #readMaxMs: number | undefined;
  #reading: Promise<Pems> | undefined;

  constructor(paths: PemPaths, readMaxMs?: number) {
    this.#paths = paths;
    this.#readMaxMs = readMaxMs;
  }

  /** Throws a Failure that names an unusable file, or both that do not answer. */
  async read(): Promise<Pems> {
    const reading = this.#reading ??= this.#begin();
    try {
      return await answerInTime(reading, this.#readMaxMs);
    } catch (error) {
      if (error instanceof Failure) throw error;
      const { certPath, keyPath } = this.#paths;
      throw new Failure("broken", `Cannot read ${certPath} and ${keyPath}: ${messageOf(error)}`);
    }
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
    return await readNamedFile(path);
  } catch (error) {
    const expected = `expected a PEM file with ${content}`;
    throw new Failure("broken", `Cannot use ${option} ${path}: ${reasonOf(error)}; ${expected}`);
  }
}
