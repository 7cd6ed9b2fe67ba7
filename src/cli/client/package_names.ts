import {
  type Links,
  readStorePathArgument,
  readStorePathArguments,
  type StorePathArgument,
} from "./store_path_argument.ts";

const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;

/** Operands of a command that takes store paths and package names. */
export interface PathsAndNames {
  readonly paths: readonly StorePathArgument[];
  /** Names such as `firefox` or `firefox-130.0`. */
  readonly names: readonly string[];
}

/** Reads all arguments. Throws a `ConfigError` with each that is neither, or if there are none. */
export function readPathsAndNames(args: readonly string[], links: Links): PathsAndNames {
  const isName = (arg: string) =>
    isPackageName(arg) && readStorePathArgument(arg, links) === undefined;
  const names = args.filter(isName);
  const others = args.filter((arg) => !isName(arg));
  const hasOnlyNames = names.length > 0 && others.length === 0;
  return { names, paths: hasOnlyNames ? [] : readStorePathArguments(others, links) };
}

/** Entries with this name, else those of this package in any version. */
export function thoseNamed<One extends { readonly name: string | null }>(
  given: string,
  all: readonly One[],
): readonly One[] {
  const exact = all.filter(({ name }) => name === given);
  return exact.length > 0 ? exact : all.filter(({ name }) => packageOf(name ?? "") === given);
}

function isPackageName(arg: string): boolean {
  return NAME_REGEXP.test(arg) && !/^\.{1,2}$/.test(arg);
}

/** `firefox` of `firefox-130.0`: as in Nix, the version begins behind the first dash and digit. */
function packageOf(name: string): string {
  return name.replace(/-\d.*$/, "");
}
