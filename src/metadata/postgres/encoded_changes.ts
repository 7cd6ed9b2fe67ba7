import { Buffer } from "node:buffer";
import { NOBODY } from "../../base/member_id.ts";
import { narNameOf, publishIdOf, type StoredName } from "../../nix/stored_name.ts";
import { DOCUMENTS_GOING_MAX } from "../document_keeper.ts";
import type { Change } from "../metadata_store.ts";

/** Keys with a lock each. More share one lock, so that the server's table of locks suffices. */
const KEYS_MAX = 512;

/** The argument of the function `apply_changes` in the database. */
export interface EncodedLists {
  readonly lists: readonly (readonly unknown[])[];
  /** Store paths whose own rows change. */
  readonly paths: readonly string[];
  readonly nars: readonly string[];
  /** Store paths that must have an id. */
  readonly hashes: readonly string[];
  /** True: too many keys, or protection may change. */
  readonly whole: boolean;
  readonly documents: boolean;
}

/** Lists of changes as JSON, with the keys of the rows that they change. */
export function encodeLists(lists: readonly (readonly Change[])[]): EncodedLists {
  const keys = new Keys();
  for (const changes of lists) for (const change of changes) keys.add(change);
  const { paths, nars, hashes, isWhole, documents } = keys;
  return {
    lists: lists.map((changes) => changes.map(encode)),
    paths: [...paths],
    nars: [...nars],
    hashes: [...hashes],
    whole: isWhole || paths.size + nars.size > KEYS_MAX,
    documents,
  };
}

/** The argument of `touch`; `undefined` where a change is no use. */
export function encodeTouches(changes: readonly Change[]): Record<string, unknown> | undefined {
  const narinfos = new Map<string, number>();
  const nars = new Map<string, number>();
  const documents = new Map<string, number>();
  const raise = (touches: Map<string, number>, key: string, atMs: number) =>
    void touches.set(key, Math.max(atMs, touches.get(key) ?? atMs));
  for (const change of changes) {
    if (change.kind === "touch-narinfo") raise(narinfos, change.storePathHash, change.atMs);
    else if (change.kind === "touch-nar") raise(nars, change.narName, change.atMs);
    else if (change.kind === "touch-document") raise(documents, change.path, change.atMs);
    else return undefined;
  }
  return {
    narinfos: Object.fromEntries(narinfos),
    nars: Object.fromEntries(nars),
    documents: Object.fromEntries(documents),
  };
}

class Keys {
  readonly paths = new Set<string>();
  readonly nars = new Set<string>();
  readonly hashes = new Set<string>();
  isWhole = false;
  documents = false;

  add(change: Change): void {
    switch (change.kind) {
      case "put-narinfo":
        this.#path(change.row.storePathHash);
        this.nars.add(change.nar.name);
        for (const reference of change.references) this.hashes.add(reference);
        return;
      case "put-signed":
      case "forget-signed":
        this.paths.add(change.storePathHash);
        return;
      case "remove-narinfo":
      case "remove-pin":
      case "roll-pin":
        this.#path(change.storePathHash);
        this.isWhole = true;
        return;
      case "unpin-name":
        this.isWhole = true;
        return;
      case "put-pin":
        this.#path(change.pin.storePathHash);
        this.isWhole = true;
        return;
      case "stage-nar":
        this.nars.add(change.nar.name);
        return;
      case "put-source":
      case "touch-nar":
      case "remove-nar":
        this.nars.add(change.narName);
        return;
      case "touch-narinfo":
        this.paths.add(change.storePathHash);
        return;
      case "put-document":
      case "remove-document":
        this.documents = true;
        return;
      case "check-document":
      case "touch-document":
        return;
      case "nar-kept":
        this.nars.add(narNameOf(change.file.at));
        return;
      default:
        this.nars.add(narNameOf(change.at));
    }
  }

  #path(hash: string): void {
    this.paths.add(hash);
    this.hashes.add(hash);
  }
}

/** A change as JSON can hold it and the database can take it apart. */
function encode(change: Change): unknown {
  switch (change.kind) {
    case "put-narinfo":
      if (change.onlyIf === undefined) return change;
      return { ...change, onlyIf: { ...change.onlyIf, ...objectOf(change.onlyIf.at) } };
    case "nar-kept": {
      const { file, replaces, ...rest } = change;
      const former = replaces && { replaces: { ...replaces, ...objectOf(replaces.at) } };
      return { ...rest, ...file, ...objectOf(file.at), ...former };
    }
    case "nar-taken":
      return { ...change, ...objectOf(change.at), owner: NOBODY };
    case "nar-publishing":
    case "nar-sealed":
    case "nar-broken":
    case "nar-marked":
    case "nar-stuck":
    case "nar-gone":
      return { ...change, ...objectOf(change.at) };
    case "put-document": {
      const pieces = change.pieces.map((piece) => Buffer.from(piece).toString("base64"));
      const { bodyBytes: size, ...facts } = change.document;
      const document = { ...facts, size };
      return { ...change, document, pieces, goingMax: DOCUMENTS_GOING_MAX };
    }
    default:
      return change;
  }
}

function objectOf(at: StoredName): { readonly nar: string; readonly id: string } {
  return { nar: narNameOf(at), id: publishIdOf(at) };
}
