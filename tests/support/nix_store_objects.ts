import { createCipheriv, createHash } from "node:crypto";
import { encodeNix32 } from "../../src/nix/nix32.ts";
import { STORE_DIR } from "../../src/nix/store_path.ts";
import type { NixClient } from "./nix_client.ts";

/** What an output holds. Every kind but the empty ones differs from name to name. */
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

export interface ObjectOptions {
  readonly name: string;
  readonly content?: Content;
  /** Store paths. */
  readonly references?: readonly string[];
  readonly selfReference?: boolean;
}

const STORE_PATH_HASH_BYTES = 20;
const BLOCK_BYTES = 1_000_000;
// Short, so that fast compressors find it.
const PERIOD_BYTES = 50_000;

/** Puts an object into the client's store and resolves to its store path. */
export async function addObject(client: NixClient, options: ObjectOptions): Promise<string> {
  const { name, content = "tree", references = [], selfReference = false } = options;
  const digest = createHash("sha256").update(name).digest().subarray(0, STORE_PATH_HASH_BYTES);
  const storePath = `${STORE_DIR}/${encodeNix32(digest)}-${name}`;
  const all = selfReference ? [...references, storePath] : references;
  const place = client.root + storePath;
  if (content === "tree") writeTree(place, name, all);
  else if (content === "empty file") Deno.writeTextFileSync(place, "");
  else if (content === "empty folder") Deno.mkdirSync(place);
  else writeRandom(place, name, content);
  const { narHash, narSize } = await measure(client, place);
  const lines = [storePath, narHash, narSize, "", all.length, ...all];
  await client.loadDb(`${lines.join("\n")}\n`);
  return storePath;
}

/** A store path and all that it needs, sorted. */
export interface Closure {
  readonly top: string;
  readonly paths: readonly string[];
}

/** The shapes of closures that are told apart in the tests. */
export const SHAPES = {
  async chain(client) {
    const paths: string[] = [];
    for (let at = 0; at < 5; at++) {
      paths.push(await addObject(client, { name: `link-${at}`, references: paths.slice(-1) }));
    }
    return closure(paths);
  },
  async diamond(client) {
    const bottom = await addObject(client, { name: "bottom" });
    const left = await addObject(client, { name: "left", references: [bottom] });
    const right = await addObject(client, { name: "right", references: [bottom] });
    const top = await addObject(client, { name: "top", references: [left, right] });
    return closure([bottom, left, right, top]);
  },
  async "self-reference"(client) {
    const bottom = await addObject(client, { name: "bottom", selfReference: true });
    const references = [bottom];
    return closure([
      bottom,
      await addObject(client, { name: "top", references, selfReference: true }),
    ]);
  },
  async "empty output"(client) {
    const file = await addObject(client, { name: "no-bytes", content: "empty file" });
    const references = [file];
    return closure([
      file,
      await addObject(client, { name: "no-files", content: "empty folder", references }),
    ]);
  },
} as const satisfies Readonly<Record<string, (client: NixClient) => Promise<Closure>>>;

/** The last of the paths is the top. */
export function closure(paths: readonly string[]): Closure {
  return { top: paths.at(-1) ?? "", paths: paths.toSorted() };
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
