import assert from "node:assert/strict";
import { ConfigError } from "../../src/config/config_error.ts";
import type { Inputs } from "../../src/config/resolve.ts";

export interface DefaultInputs {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Content by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Content of the configuration file, named by `LARDER_CONFIG_FILE`. */
  readonly toml?: string;
  readonly hostname?: string;
  readonly isTerminal?: boolean;
}

/** The path at which `toml` of `inputsOf` is found. */
export const TOML_PATH = "/conf/larder.toml";

/** Inputs for settings that touch nothing of the machine. */
export function inputsOf(
  { args = [], env = {}, files = {}, toml, hostname = "host", isTerminal = false }: DefaultInputs =
    {},
): Inputs {
  const all = toml === undefined ? files : { ...files, [TOML_PATH]: toml };
  return {
    args,
    env: toml === undefined ? env : { LARDER_CONFIG_FILE: TOML_PATH, ...env },
    readTextFile(path) {
      const content = all[path];
      if (content === undefined) throw new Error("No such file");
      return content;
    },
    fileExists: (path) => path in all,
    hostname: () => hostname,
    isTerminal: () => isTerminal,
  };
}

/** The problems that make `resolve` fail. */
export function problemsOf(resolve: () => unknown): readonly string[] {
  try {
    resolve();
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems;
  }
  assert.fail("there was no problem");
}
