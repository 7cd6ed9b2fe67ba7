import { configFilePath } from "./find_config_file.ts";
import { OPTIONS, type Settings } from "./options.ts";
import { NCPS_ONLY } from "./options/ncps_only.ts";
import { type Inputs, resolve, type Resolved } from "./resolve.ts";
import { NO_EFFECT, RULES } from "./rules.ts";
import { isYamlPath, loadYamlParser } from "./sources/config_text.ts";

/** The settings of larder, with their sources and warnings. */
export type ResolvedSettings = Resolved<typeof OPTIONS> & { readonly settings: Settings };

/** `--cache-hostname` where it is set; else it is the machine's host name. */
export function givenHostname({ settings, sources }: ResolvedSettings): string | undefined {
  const name = "cache.hostname";
  return sources[name].from === "default" ? undefined : settings[name];
}

/** The same inputs, from files that are read beside this thread. */
export type SettingsInputs =
  & Omit<Inputs, keyof FileReads>
  & {
    readonly [K in keyof FileReads]: (path: string) => Awaitable<ReturnType<FileReads[K]>>;
  };

type FileReads = Pick<Inputs, "readTextFile" | "fileExists">;
type Awaitable<Value> = Value | Promise<Value>;

/** Like `resolveSettings`, also from a file of YAML or JSON. */
export async function readSettings(inputs: SettingsInputs): Promise<ResolvedSettings> {
  return await withFilesRead(inputs, async (read) => {
    const path = configFilePath(OPTIONS, read);
    if (path === undefined || !isYamlPath(path)) return resolveSettings(read);
    return resolveSettings({ ...read, parseYaml: await loadYamlParser() });
  });
}

/**
 * Runs `work` again and again, until it has asked for no file that is not read yet. Only its first
 * questions depend on nothing: the file of settings names others.
 */
async function withFilesRead<Value>(
  inputs: SettingsInputs,
  work: (read: Inputs) => Promise<Value>,
): Promise<Value> {
  const texts = new Answers(inputs.readTextFile, "");
  const existence = new Answers(inputs.fileExists, false);
  const read = { ...inputs, readTextFile: texts.get, fileExists: existence.get };
  for (;;) {
    const outcome = await work(read).then((value) => () => value, (error) => () => {
      throw error;
    });
    if (!await texts.fetch() && !await existence.fetch()) return outcome();
  }
}

/** The answers to a question about paths. */
class Answers<Value> {
  readonly #ask: (path: string) => Awaitable<Value>;
  readonly #unread: Value;
  readonly #known = new Map<string, () => Value>();
  #wanted = new Set<string>();

  constructor(ask: (path: string) => Awaitable<Value>, unread: Value) {
    this.#ask = ask;
    this.#unread = unread;
  }

  /** The known answer, or its error; else `unread`, and the next `fetch` asks. */
  readonly get = (path: string): Value => {
    const known = this.#known.get(path);
    if (known !== undefined) return known();
    this.#wanted.add(path);
    return this.#unread;
  };

  /** False if there was nothing to ask. */
  async fetch(): Promise<boolean> {
    const wanted = [...this.#wanted];
    this.#wanted.clear();
    await Promise.all(wanted.map((path) => this.#fetch(path)));
    return wanted.length > 0;
  }

  async #fetch(path: string): Promise<void> {
    try {
      const value = await this.#ask(path);
      this.#known.set(path, () => value);
    } catch (error) {
      this.#known.set(path, () => {
        throw error;
      });
    }
  }
}

/** The effective settings of larder. Throws a `ConfigError` with all problems at once. */
export function resolveSettings(inputs: Inputs): ResolvedSettings {
  return resolve(OPTIONS, inputs, { rules: RULES, noEffect: NO_EFFECT, foreign: NCPS_ONLY });
}
