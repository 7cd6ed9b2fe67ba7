import { ConfigError } from "../../config/config_error.ts";
import {
  type BaseName,
  hashOfBaseName,
  isBaseName,
  isStorePathHash,
  STORE_DIR,
  type StorePathHash,
} from "../../nix/store_path.ts";

/** A store path from the command line. */
export interface StorePathArgument {
  /** The argument as typed. */
  readonly given: string;
  readonly storePathHash: StorePathHash;
  /** Missing if only the hash was given. */
  readonly baseName?: BaseName;
}

/** Access to symbolic links. */
export interface Links {
  /** Absolute. */
  readonly workingDirectory: () => string;
  /** The target of a link; `undefined` if there is no link. */
  readonly readLink: (path: string) => string | undefined;
}

/** The kernel's limit. */
const LINKS_MAX = 40;

/** The form of such an argument, for messages. */
export const STORE_PATH_EXPECTED = "a store path, its hash, or a link to one such as ./result";

const STORE_SEGMENTS = segmentsOf(STORE_DIR);

/**
 * Reads all arguments. Throws a `ConfigError` with each invalid one, or if there are none. It says
 * what the command expects.
 */
export function readStorePathArguments(
  args: readonly string[],
  links: Links,
  expected = STORE_PATH_EXPECTED,
): readonly StorePathArgument[] {
  if (args.length === 0) throw new ConfigError([`got nothing, expected ${expected}`]);
  const read = args.map((arg) => readStorePathArgument(arg, links));
  const problems = read.flatMap((one, index) =>
    one === undefined ? [`${JSON.stringify(args[index])}: expected ${expected}`] : []
  );
  if (problems.length > 0) throw new ConfigError(problems);
  const byHash = new Map<StorePathHash, StorePathArgument>();
  for (const one of read) {
    // Two names of one path count once.
    if (one !== undefined && !byHash.has(one.storePathHash)) byHash.set(one.storePathHash, one);
  }
  return [...byHash.values()];
}

/**
 * Reads a store path hash (alone, or before `.narinfo` or `-name`), a store path or a path below
 * it, or a link to one. Only links have to exist. `undefined` for anything else.
 */
export function readStorePathArgument(given: string, links: Links): StorePathArgument | undefined {
  const hash = given.replace(/\.narinfo$/, "");
  if (isStorePathHash(hash)) return { given, storePathHash: hash };
  const baseName = isBaseName(given) ? given : followToStore(given, links);
  return baseName && { given, storePathHash: hashOfBaseName(baseName), baseName };
}

/** Follows the links of a path one by one, up to the first target in the store. */
function followToStore(path: string, { workingDirectory, readLink }: Links): BaseName | undefined {
  let rest = segmentsOf(path.startsWith("/") ? path : `${workingDirectory()}/${path}`);
  let followed: readonly string[] = [];
  for (let links = 0; rest.length > 0;) {
    const literal = followed.length === 0 ? storeSegment(rest) : undefined;
    if (literal !== undefined) return literal;
    const [segment = "", ...others] = rest;
    if (segment === "..") {
      [followed, rest] = [followed.slice(0, -1), others];
      continue;
    }
    const here = [...followed, segment];
    if (`/${followed.join("/")}` === STORE_DIR && isBaseName(segment)) return segment;
    const target = readLink(`/${here.join("/")}`);
    if (target === undefined) {
      [followed, rest] = [here, others];
      continue;
    }
    if (++links > LINKS_MAX) return undefined;
    rest = [...segmentsOf(target), ...others];
    if (target.startsWith("/")) followed = [];
  }
  return undefined;
}

/** A path with the store directory's spelling counts, even if that directory is a link. */
function storeSegment(segments: readonly string[]): BaseName | undefined {
  const [baseName = ""] = segments.slice(STORE_SEGMENTS.length);
  const isBelow = STORE_SEGMENTS.every((segment, at) => segments[at] === segment);
  return isBelow && isBaseName(baseName) && !segments.includes("..") ? baseName : undefined;
}

function segmentsOf(path: string): readonly string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}

/** A name such as `firefox-130.0`, as a store path has it behind its hash. */
export const PACKAGE_NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;

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
  return PACKAGE_NAME_REGEXP.test(arg) && !/^\.{1,2}$/.test(arg);
}

/** `firefox` of `firefox-130.0`: as in Nix, the version begins behind the first dash and digit. */
function packageOf(name: string): string {
  return name.replace(/-\d.*$/, "");
}
