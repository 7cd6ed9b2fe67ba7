import { ConfigError } from "../../config/config_error.ts";
import {
  type BaseName,
  hashOfBaseName,
  isBaseName,
  isStorePathHash,
  STORE_DIR,
  type StorePathHash,
} from "../../nix/store_path.ts";

/** A store path as somebody named it on a command line. */
export interface StorePathArgument {
  /** As it was typed. */
  readonly given: string;
  readonly storePathHash: StorePathHash;
  /** Absent where only the hash was given. */
  readonly baseName?: BaseName;
}

/** How paths of this machine are looked at. */
export interface Links {
  /** Absolute. */
  readonly workingDirectory: () => string;
  /** What the link at a path says; `undefined` when there is no link. */
  readonly readLink: (path: string) => string | undefined;
}

/** As many as the kernel follows. */
const LINKS_MAX = 40;

/** What command lines call such an argument. */
export const STORE_PATH_EXPECTED = "a store path, its hash, or a link to one such as ./result";

const STORE_SEGMENTS = segmentsOf(STORE_DIR);

/** Reads all of them. Throws a `ConfigError` with each that is none, or when there are none. */
export function readStorePathArguments(
  words: readonly string[],
  links: Links,
): readonly StorePathArgument[] {
  if (words.length === 0) throw new ConfigError([`got nothing, expected ${STORE_PATH_EXPECTED}`]);
  const read = words.map((word) => readStorePathArgument(word, links));
  const problems = read.flatMap((one, index) =>
    one === undefined ? [`${JSON.stringify(words[index])}: expected ${STORE_PATH_EXPECTED}`] : []
  );
  if (problems.length > 0) throw new ConfigError(problems);
  const byHash = new Map<StorePathHash, StorePathArgument>();
  for (const one of read) {
    // The same path under two names is one thing to do.
    if (one !== undefined && !byHash.has(one.storePathHash)) byHash.set(one.storePathHash, one);
  }
  return [...byHash.values()];
}

/**
 * A store path hash, alone or in front of `.narinfo` or `-name`; a store path, or a path below
 * one; a link that leads to one, through however many others. Nothing of it needs to exist here
 * but the links. `undefined` for anything else.
 */
export function readStorePathArgument(given: string, links: Links): StorePathArgument | undefined {
  const word = given.replace(/\.narinfo$/, "");
  if (isStorePathHash(word)) return { given, storePathHash: word };
  const baseName = isBaseName(given) ? given : followToStore(given, links);
  return baseName && { given, storePathHash: hashOfBaseName(baseName), baseName };
}

/** Follows the links of a path one by one until what it leads to lies in the store. */
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

/** What is written as a store path is one, also where the store directory itself is a link. */
function storeSegment(segments: readonly string[]): BaseName | undefined {
  const [baseName = ""] = segments.slice(STORE_SEGMENTS.length);
  const isBelow = STORE_SEGMENTS.every((segment, at) => segments[at] === segment);
  return isBelow && isBaseName(baseName) && !segments.includes("..") ? baseName : undefined;
}

function segmentsOf(path: string): readonly string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
