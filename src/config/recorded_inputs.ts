import { messageOf } from "../base/failure.ts";
import type { Inputs } from "./resolve.ts";

/** All that settings were read from, as a message to another thread can hold it. */
export interface InputRecord extends Pick<Inputs, "args" | "env"> {
  /** Texts of files by path. */
  readonly texts: Map<string, string>;
  /** Why files could not be read, by path. */
  readonly failures: Map<string, string>;
  /** Whether files exist, by path. */
  readonly existing: Map<string, boolean>;
  readonly hostname: string;
  readonly isTerminal: boolean;
}

/** The same inputs. What is read through them is in the record then. */
export function recordInputs(inputs: Inputs): { inputs: Inputs; record: InputRecord } {
  const record: InputRecord = {
    args: inputs.args,
    env: inputs.env,
    texts: new Map(),
    failures: new Map(),
    existing: new Map(),
    hostname: inputs.hostname(),
    isTerminal: inputs.isTerminal(),
  };
  function readTextFile(path: string): string {
    try {
      const text = inputs.readTextFile(path);
      record.texts.set(path, text);
      return text;
    } catch (error) {
      record.failures.set(path, messageOf(error));
      throw error;
    }
  }
  function fileExists(path: string): boolean {
    const exists = inputs.fileExists(path);
    record.existing.set(path, exists);
    return exists;
  }
  return { inputs: { ...inputs, readTextFile, fileExists }, record };
}

/** Inputs that answer as the recorded ones did, without a look at any file. */
export function replayInputs(record: InputRecord): Inputs {
  return {
    args: record.args,
    env: record.env,
    readTextFile(path) {
      const text = record.texts.get(path);
      if (text === undefined) throw new Error(record.failures.get(path) ?? "No such file");
      return text;
    },
    fileExists: (path) => record.existing.get(path) ?? false,
    hostname: () => record.hostname,
    isTerminal: () => record.isTerminal,
  };
}
