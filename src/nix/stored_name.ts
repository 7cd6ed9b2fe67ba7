import { dice } from "../runtime/current.ts";
import { encodeNix32, NIX32_ALPHABET } from "./nix32.ts";
import { type NarName, parseNarName } from "./nar_name.ts";

declare const brand: unique symbol;

/**
 * The name of one stored object: its NAR name, and the id of its publishing. It is never used
 * again, so publishing and removing cannot collide. Objects from before ids have the NAR name
 * alone.
 */
export type StoredName = string & { readonly [brand]: "stored name" };

/** Distinguishes the objects of one NAR. Empty for objects from before ids. */
export type PublishId = string & { readonly [brand]: "publish id" };

/**
 * The state of a stored object when larder last read its bytes, made without reading them. An equal
 * seal means that nobody has changed the object since.
 */
export type Seal = string & { readonly [brand]: "seal" };

const ID_BYTES = 10;
const ID_CHARS = 16;
const ID_REGEXP = new RegExp(`^[${NIX32_ALPHABET}]{${ID_CHARS}}$`);

/** A name that no object has had. */
export function newStoredName(narName: NarName): StoredName {
  return storedName(narName, encodeNix32(dice.bytes(ID_BYTES)));
}

export function storedName(narName: NarName, id: string): StoredName {
  return (id === "" ? narName : `${narName}.${id}`) as string as StoredName;
}

export function narNameOf(at: StoredName): NarName {
  return (hasId(at) ? at.slice(0, -(ID_CHARS + 1)) : at) as string as NarName;
}

export function publishIdOf(at: StoredName): PublishId {
  return (hasId(at) ? at.slice(-ID_CHARS) : "") as PublishId;
}

/** `undefined` for a file that larder did not store. */
export function parseStoredName(text: string): StoredName | undefined {
  const at = text as StoredName;
  if (hasId(at) && !ID_REGEXP.test(publishIdOf(at))) return undefined;
  return parseNarName(narNameOf(at)) === undefined ? undefined : at;
}

/** The extensions of NAR names are shorter than any id. */
function hasId(at: StoredName): boolean {
  return at.lastIndexOf(".") === at.length - ID_CHARS - 1;
}
