import type { Bytes } from "../../../src/base/bytes.ts";
import { NixClient } from "../../../tests/support/nix_client.ts";
import {
  addObjects,
  type NixObject,
  storePathOf,
} from "../../../tests/support/nix_store_objects.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { hashOfBaseName, parseBaseName, STORE_DIR } from "../../../src/nix/store_path.ts";
import type { PulledPath } from "./round_trips.ts";

/** Store paths of the closure. */
export const PATHS_COUNT = 244;

/** NAR files in sum, after compression. */
const FILES_BYTES = 45_000_000;

const SMALLEST_BYTES = 2_000;
const LARGEST_BYTES = 6_000_000;

/** Each refers to those at these parts of its own place: the closure is a dozen levels deep. */
const REFERENCE_PARTS = [1 / 4, 1 / 2, 2 / 3, 3 / 4, 5 / 6];

/** A closure as a binary cache that Nix itself made. */
export interface PulledClosure {
  readonly top: string;
  readonly publicKey: string;
  /** Bytes of the files by their paths on a server. */
  readonly files: ReadonlyMap<string, Bytes>;
  readonly narinfoPaths: readonly string[];
  /** By base names, as narinfos have them. */
  readonly paths: readonly PulledPath[];
}

/** Makes the closure, and forgets the store that it was made in. Takes half a minute. */
export async function pulledClosure(folder: string): Promise<PulledClosure> {
  using maker = new NixClient();
  const key = await maker.makeKey("larder-bench-1");
  const { top } = await addObjects(maker, objects());
  await maker.copyTo(folder, top, { compression: "xz", level: 0, key });
  const files = new Map<string, Bytes>();
  for (const below of ["", "/nar"]) {
    for (const { name, isFile } of Deno.readDirSync(folder + below)) {
      if (isFile) files.set(`${below}/${name}`, Deno.readFileSync(`${folder}${below}/${name}`));
    }
  }
  const narinfoPaths = objects().map(({ name }) => narinfoPathOf(storePathOf(name)));
  const paths = narinfoPaths.map((path) => pulledPathOf(files.get(path)));
  return { top, publicKey: key.publicKey, files, narinfoPaths, paths };
}

function pulledPathOf(narinfo: Uint8Array | undefined): PulledPath {
  const { baseName, references, fileSize, narSize } = parseNarinfo(
    new TextDecoder().decode(narinfo),
  );
  return { name: baseName, references, fileBytes: fileSize ?? narSize };
}

function narinfoPathOf(storePath: string): string {
  return `/${hashOfBaseName(parseBaseName(storePath.slice(STORE_DIR.length + 1)))}.narinfo`;
}

/** The last one leads to all others. */
function objects(): readonly NixObject[] {
  const names = Array.from({ length: PATHS_COUNT }, (_, at) => `pulled-${at}`);
  const sizes = names.map((_, at) => sizeAt(at));
  const scale = FILES_BYTES / sizes.reduce((sum, bytes) => sum + bytes, 0);
  const referred = new Set<number>();
  const made = names.map((name, at): NixObject => {
    const places = new Set(REFERENCE_PARTS.map((part) => Math.floor(at * part)));
    places.delete(at);
    for (const place of places) referred.add(place);
    const references = [...places].map((place) => names[place] ?? "");
    return { name, content: { bytes: Math.round((sizes[at] ?? 0) * scale) }, references };
  });
  const left = names.filter((_, at) => at < PATHS_COUNT - 1 && !referred.has(at));
  const last = made.at(-1);
  if (last === undefined) return made;
  return [...made.slice(0, -1), { ...last, references: [...last.references ?? [], ...left] }];
}

/** Most are small, few are large, in no order that has to do with the references. */
function sizeAt(at: number): number {
  const part = (at * 97 % PATHS_COUNT) / PATHS_COUNT;
  return SMALLEST_BYTES * (LARGEST_BYTES / SMALLEST_BYTES) ** (part ** 1.5);
}
