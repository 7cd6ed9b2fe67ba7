/** How one sort of value is read and shown. `T` is what the program receives. */
export interface Kind<T> {
  /** Shown in help, e.g. `SIZE`. */
  readonly placeholder: string;
  /** The TOML type that a value may have without quotes; a string is always accepted. */
  readonly bare?: "number" | "boolean";
  /** Set for lists only: the kind of each item. */
  readonly item?: Kind<unknown>;
  /** Throws an `Error` whose message says what was expected. */
  parse(text: string): T;
  /** Inverse of `parse`; used for help, the reference and the sample file. */
  print(value: T): string;
  /** Hides what nobody should see in a text, right or wrong, that was given for this kind. */
  redact?(text: string): string;
}

/** What a kind expects instead of `text`; `undefined` when the text is right. */
export function expectedInstead(kind: Kind<unknown>, text: string): string | undefined {
  try {
    kind.parse(text);
    return undefined;
  } catch (error) {
    return expectationOf(error);
  }
}

/** What a kind expects, as its `parse` threw it: our own words, in which nothing is secret. */
export function expectationOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** What a default may be computed from. */
export interface Surroundings {
  /** An environment variable; `undefined` when it is unset or empty. */
  variable(name: string): string | undefined;
  hostname(): string;
  /** Whether standard output is a terminal. */
  isTerminal(): boolean;
  /** The printed value of an option that stands earlier in the table. */
  textOf(key: string): string;
}

/** One knob. Everything a user can see about it is derived from this record. */
export interface Option<T> {
  readonly kind: Kind<T>;
  readonly default?: T;
  /** A default that depends on the machine; goes with `shown`. */
  readonly computed?: (surroundings: Surroundings) => T;
  /** What help says of a default that is computed, or of being left out. */
  readonly shown?: string;
  /** What the sample file shows where there is no default, if the placeholder is no such value. */
  readonly example?: string;
  /** One line, no full stop; longer prose goes to `details`. */
  readonly help: string;
  readonly details?: string;
  /** How ncps spells it where that differs: accepted beside the names of its own. */
  readonly also?: readonly Names[];
  /** Never printed, never logged; its flag has a twin that names a file. */
  readonly secret?: true;
  /** The environment variable, where it is not the one that `variableName` makes of the key. */
  readonly variable?: string;
  /** Cannot be set in the configuration file. */
  readonly notInFile?: true;
}

/** What a setting is called in each source; one in which it has no name is left out. */
export interface Names {
  readonly flag?: string;
  readonly variable?: string;
  /** In the configuration file. */
  readonly key?: string;
}

/** A row, whatever its kind. */
export type AnyOption = Option<unknown>;

/** Rows by key. */
export type OptionTable = Readonly<Record<string, AnyOption>>;

/** `T` when a default exists, `T | undefined` when it does not. */
export type ValueOf<O> = O extends { kind: Kind<infer T>; default: unknown } ? T
  : O extends { kind: Kind<infer T>; computed: unknown } ? T
  : O extends { kind: Kind<infer T> } ? T | undefined
  : never;

/** What the program receives of a table. */
export type Values<Table> = { readonly [K in keyof Table]: ValueOf<Table[K]> };

/** `cache.max-size` → `--cache-max-size`. */
export function flagName(key: string): string {
  return `--${key.replaceAll(".", "-")}`;
}

/** `cache.max-size` → `CACHE_MAX_SIZE`. */
export function variableName(key: string): string {
  return key.replaceAll(/[.-]/g, "_").toUpperCase();
}

/** The names that a key makes by itself. */
export function namesOf(key: string): Required<Names> {
  return { flag: flagName(key), variable: variableName(key), key };
}

/** The environment variable of an option: its own, or the one that its key makes. */
export function variableFor(key: string, option: AnyOption): string {
  return option.variable ?? variableName(key);
}

/** Stands for a secret wherever settings are printed, and is refused as a value. */
export const HIDDEN = "(hidden)";
