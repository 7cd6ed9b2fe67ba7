import { createCipheriv, createHash } from "node:crypto";
import { encodeNix32 } from "../../src/nix/nix32.ts";
import { STORE_DIR } from "../../src/nix/store_path.ts";
import type { NixClient } from "./nix_client.ts";

/** The content of an output. Every kind but the empty ones differs from name to name. */
export type Content =
  /** Some small files and links that name the references. */
  | "tree"
  | "empty file"
  | "empty folder"
  | Random;

/** One file of bytes that no compressor makes smaller, or the same few over and over. */
export interface Random {
  readonly bytes: number;
  readonly isRepetitive?: boolean;
}

export interface NixObject {
  readonly name: string;
  readonly content?: Content;
  /** Names of other objects, or its own. */
  readonly references?: readonly string[];
  /** The store path of the derivation that built it. */
  readonly deriver?: string;
}

/** A store path and all that it needs, sorted. */
export interface Closure {
  readonly top: string;
  readonly paths: readonly string[];
}

const STORE_PATH_HASH_BYTES = 20;
const BLOCK_BYTES = 1_000_000;
// Short, so that fast compressors find it.
const PERIOD_BYTES = 50_000;

/** Closures of every shape that references can make. The last object is the top. */
export const SHAPES: Readonly<Record<string, readonly NixObject[]>> = {
  "chain": [
    { name: "link-1" },
    { name: "link-2", references: ["link-1"] },
    { name: "link-3", references: ["link-2"] },
    { name: "link-4", references: ["link-3"] },
    { name: "link-5", references: ["link-4"] },
  ],
  "diamond": [
    { name: "bottom" },
    { name: "left", references: ["bottom"] },
    { name: "right", references: ["bottom"] },
    { name: "top", references: ["left", "right"] },
  ],
  "self-reference": [
    { name: "bottom", references: ["bottom"] },
    { name: "top", references: ["bottom", "top"] },
  ],
  "empty output": [
    { name: "no-bytes", content: "empty file" },
    { name: "no-files", content: "empty folder", references: ["no-bytes"] },
  ],
};

/** Puts objects into the client's store. The last one is the top of the closure. */
export async function addObjects(
  client: NixClient,
  objects: readonly NixObject[],
): Promise<Closure> {
  const registrations = await Promise.all(objects.map((object) => addObject(client, object)));
  await client.loadDb(registrations.join(""));
  const paths = objects.map(({ name }) => storePathOf(name));
  return { top: paths.at(-1) ?? "", paths: paths.toSorted() };
}

/** Where the object of this name lies. */
export function storePathOf(name: string): string {
  const digest = createHash("sha256").update(name).digest().subarray(0, STORE_PATH_HASH_BYTES);
  return `${STORE_DIR}/${encodeNix32(digest)}-${name}`;
}

/** Resolves to the lines with which Nix registers it. */
async function addObject(client: NixClient, object: NixObject): Promise<string> {
  const { name, content = "tree", deriver = "" } = object;
  const references = object.references?.map(storePathOf) ?? [];
  const storePath = storePathOf(name);
  const place = client.root + storePath;
  if (content === "tree") writeTree(place, name, references);
  else if (content === "empty file") Deno.writeTextFileSync(place, "");
  else if (content === "empty folder") Deno.mkdirSync(place);
  else writeRandom(place, name, content);
  const { narHash, narSize } = await measure(client, place);
  return [storePath, narHash, narSize, deriver, references.length, ...references, ""].join("\n");
}

function writeTree(place: string, name: string, references: readonly string[]): void {
  Deno.mkdirSync(`${place}/bin`, { recursive: true });
  const words = ["exec echo", name, ...references].join(" ");
  Deno.writeTextFileSync(`${place}/bin/${name}`, `#!/bin/sh\n${words}\n`, { mode: 0o755 });
  Deno.writeTextFileSync(`${place}/readme`, `${name}\n`.repeat(1_000));
  for (const [at, reference] of references.entries()) {
    Deno.symlinkSync(reference, `${place}/reference-${at}`);
  }
}

function writeRandom(place: string, name: string, { bytes, isRepetitive = false }: Random): void {
  using file = Deno.openSync(place, { write: true, createNew: true });
  // As fast as it gets, and the same bytes for the same name.
  const key = createHash("md5").update(name).digest();
  const random = createCipheriv("aes-128-ctr", key, new Uint8Array(key.length));
  const zeros = new Uint8Array(isRepetitive ? PERIOD_BYTES : BLOCK_BYTES);
  let block = random.update(zeros);
  for (let left = bytes; left > 0; left -= block.length) {
    file.writeSync(block.subarray(0, left));
    if (!isRepetitive) block = random.update(zeros);
  }
  random.final();
}

async function measure(
  client: NixClient,
  place: string,
): Promise<{ narHash: string; narSize: number }> {
  const hash = createHash("sha256");
  let narSize = 0;
  for await (const bytes of client.dump(place)) {
    hash.update(bytes);
    narSize += bytes.length;
  }
  return { narHash: hash.digest("hex"), narSize };
}
