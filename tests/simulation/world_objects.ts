import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Bzip2Speaker } from "../../src/cache/forms/spoken_bzip2.ts";
import { Speaker } from "../../src/cache/forms/spoken_form.ts";
import { recompressedFile } from "../support/stub_encoder.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { type FileHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { narFileOf } from "../support/nar_files.ts";
import type { NarFile } from "../support/dialects.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import type { SeededDice } from "./seeded_dice.ts";

/** Compressions whose decoders finish within a macrotask, so that virtual time may jump. */
export const PLAYED_COMPRESSIONS = ["none", "gzip"] as const satisfies readonly Compression[];

/** Scenes compile their decoders at once. */
const DRAWN_COMPRESSIONS = [...PLAYED_COMPRESSIONS, "xz"] as const;

/** bzip2 takes too long for an object that needs none. */
export type SceneCompression = typeof DRAWN_COMPRESSIONS[number] | "bzip2";

/** A store object of a world, and each file that holds its NAR. */
export interface WorldObject {
  readonly object: StoreObject;
  readonly files: ReadonlyMap<Compression, NarFile>;
  /** The hashes of all bytes that are a file of the NAR: also those that larder makes of it. */
  readonly right: ReadonlySet<string>;
}

/** Store objects that refer to some of those before them. */
export async function drawObjects(
  dice: SeededDice,
  count: number,
  bytesMax: number,
  kind = "thing",
): Promise<readonly WorldObject[]> {
  const all: WorldObject[] = [];
  for (let at = 0; at < count; at++) {
    const references = all.filter(() => dice.happens(2 / (at + 2))).map(({ object }) => object);
    const size = Math.ceil(bytesMax * dice.fraction() ** 3) + 100;
    const seed = dice.below(1_000_000);
    const object = makeStoreObject({ name: `${kind}-${at}`, size, references, seed });
    all.push(await narFilesOf(object));
  }
  return all;
}

/** Scenes share their objects. */
const known = new WeakMap<StoreObject, Map<string, Promise<WorldObject>>>();

/** An object and its files. */
export function narFilesOf(
  object: StoreObject,
  compressions: readonly SceneCompression[] = DRAWN_COMPRESSIONS,
): Promise<WorldObject> {
  const ofObject = known.get(object) ?? new Map<string, Promise<WorldObject>>();
  known.set(object, ofObject);
  const key = String(compressions);
  const files = ofObject.get(key) ?? makeFiles(object, compressions);
  ofObject.set(key, files);
  return files;
}

async function makeFiles(
  object: StoreObject,
  compressions: readonly SceneCompression[],
): Promise<WorldObject> {
  const { nar } = object;
  const files = new Map<Compression, NarFile>();
  for (const compression of compressions) {
    // larder speaks xz and bzip2 with other bytes than these, which are two streams.
    const frames = compression === "xz" ? 2 : 1;
    const file = compression === "bzip2"
      ? twoStreams(nar)
      : await narFileOf(nar, { compression, frames, stored: true });
    files.set(compression, file);
  }
  const spoken = (["gzip", "zstd"] as const).map((compression) => {
    const speaker = new Speaker(compression, object.nar.length);
    return [speaker.begin(), speaker.speak(object.nar), speaker.end()].flat();
  });
  const made = [...spoken, [recompressedFile(object.nar)], [object.nar]];
  const all = [...made, ...[...files.values()].map(({ bytes }) => [bytes])];
  return { object, files, right: new Set(all.map(digestOf)) };
}

function twoStreams(nar: Uint8Array): NarFile {
  const half = nar.length >> 1;
  const parts = [nar.subarray(0, half), nar.subarray(half)].flatMap((part) => {
    const speaker = new Bzip2Speaker(part.length);
    return [...speaker.speak(part), speaker.end()];
  });
  const bytes = new Uint8Array(Buffer.concat(parts));
  const digest = createHash("sha256").update(bytes).digest();
  return { compression: "bzip2", bytes, fileHash: sha256FromDigest(digest) as FileHash };
}

function digestOf(parts: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
