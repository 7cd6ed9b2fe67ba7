/** Parser and printer of one sort of value. `T` is the parsed type. */
export interface Kind<T> {
  /** Shown in help, e.g. `SIZE`. */
  readonly placeholder: string;
  /** The TOML type allowed without quotes; a string is always accepted. */
  readonly bare?: "number" | "boolean";
  /** All valid texts, for choices only. */
  readonly values?: readonly string[];
  /** The smallest and the largest number, for whole numbers only. */
  readonly range?: readonly [min: number, max: number];
  /** The kind of each item, for lists only. */
  readonly item?: Kind<unknown>;
  /** Splits the text form of a list. Default: at commas and white space. */
  split?(text: string): readonly string[];
  /** Throws an `Error` whose message is the expected form. */
  parse(text: string): T;
  /** Inverse of `parse`, for help, the reference and the sample file. */
  print(value: T): string;
  /** Hides secrets in a given text, valid or not. */
  redact?(text: string): string;
}

/** The form that a kind expects; `undefined` if `text` is valid. */
export function expectedInstead(kind: Kind<unknown>, text: string): string | undefined {
  try {
    kind.parse(text);
    return undefined;
  } catch (error) {
    return expectationOf(error);
  }
}

/** The expected form from an error of `parse`. It is a constant text without secrets. */
export function expectationOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Inputs of computed defaults. */
export interface DefaultInputs {
  /** An environment variable; `undefined` if unset or empty. */
  variable(name: string): string | undefined;
  hostname(): string;
  /** The processor's cores, as far as this process may use them. */
  cores(): number;
  /** True if standard output is a terminal. */
  isTerminal(): boolean;
  /** The printed value of an earlier option in the table. */
  textOf(key: string): string;
}

/** A setting. Help, parsing and documentation derive from this record. */
export interface Option<T> {
  readonly kind: Kind<T>;
  readonly default?: T;
  /** A default that depends on the machine; requires `shown`. */
  readonly computed?: (surroundings: DefaultInputs) => T;
  /** Help's text for a computed default, or for no default. */
  readonly shown?: string;
  /** The sample file's value if there is no default and the placeholder is invalid. */
  readonly example?: string;
  /** One line, no full stop; longer prose goes to `details`. */
  readonly help: string;
  readonly details?: string;
  /** Other names in ncps, also accepted. */
  readonly also?: readonly Names[];
  /**
   * Never printed, never logged. Each of its names has a twin with `-file` for a path, and systemd
   * can pass it as a credential.
   */
  readonly secret?: true;
  /** The path of a file that no other user may read. */
  readonly isSecretFile?: true;
  /** The environment variable, if it differs from `variableName` of the key. */
  readonly variable?: string;
  /** Cannot be set in the configuration file. */
  readonly notInFile?: true;
}

/** The names of a setting, by source. A missing one cannot be used. */
export interface Names {
  readonly flag?: string;
  readonly variable?: string;
  /** Key in the configuration file. */
  readonly key?: string;
}

/** A row of any kind. */
export type AnyOption = Option<unknown>;

/** Rows by key. */
export type OptionTable = Readonly<Record<string, AnyOption>>;

/** `T` if a default exists, else `T | undefined`. */
export type ValueOf<O> = O extends { kind: Kind<infer T>; default: unknown } ? T
  : O extends { kind: Kind<infer T>; computed: unknown } ? T
  : O extends { kind: Kind<infer T> } ? T | undefined
  : never;

/** The parsed values of a table. */
export type Values<Table> = { readonly [K in keyof Table]: ValueOf<Table[K]> };

/** `cache.max-size` → `--cache-max-size`. */
export function flagName(key: string): string {
  return `--${key.replaceAll(".", "-")}`;
}

/** `cache.max-size` → `CACHE_MAX_SIZE`. */
function variableName(key: string): string {
  return key.replaceAll(/[.-]/g, "_").toUpperCase();
}

/** The names derived from a key. */
export function namesOf(key: string): Required<Names> {
  return { flag: flagName(key), variable: variableName(key), key };
}

/** The environment variable of an option: its own, or the one derived from its key. */
export function variableFor(key: string, option: AnyOption): string {
  return option.variable ?? variableName(key);
}

/** Placeholder for secrets in printed settings; invalid as a value. */
export const HIDDEN = "(hidden)";
