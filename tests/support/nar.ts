import type { Bytes } from "../../src/base/bytes.ts";

/** A file tree as a NAR sees it. Text of a file is written as UTF-8. */
export type NarTree =
  | { readonly file: Uint8Array | string; readonly executable?: boolean }
  | { readonly symlink: string }
  | { readonly dir: Readonly<Record<string, NarTree>> };

/** The NAR of a tree: the bytes that `nix-store --dump` gives for the same tree on disk. */
export function writeNar(tree: NarTree): Bytes {
  const chunks: Uint8Array[] = [];
  pushText(chunks, "nix-archive-1");
  pushNode(chunks, tree);
  return concat(chunks);
}

function pushNode(chunks: Uint8Array[], tree: NarTree): void {
  pushText(chunks, "(", "type");
  if ("file" in tree) {
    pushText(chunks, "regular");
    if (tree.executable) pushText(chunks, "executable", "");
    pushText(chunks, "contents");
    pushBytes(chunks, bytesOf(tree.file));
  } else if ("symlink" in tree) {
    pushText(chunks, "symlink", "target", tree.symlink);
  } else {
    pushText(chunks, "directory");
    for (const [name, node] of entriesInByteOrder(tree.dir)) {
      pushText(chunks, "entry", "(", "name", name, "node");
      pushNode(chunks, node);
      pushText(chunks, ")");
    }
  }
  pushText(chunks, ")");
}

// Names are ordered by their UTF-8 bytes; JavaScript's own order is that of UTF-16.
function entriesInByteOrder(dir: Readonly<Record<string, NarTree>>): [string, NarTree][] {
  return Object.entries(dir).sort(([left], [right]) => compare(bytesOf(left), bytesOf(right)));
}

function compare(left: Uint8Array, right: Uint8Array): number {
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function pushText(chunks: Uint8Array[], ...words: readonly string[]): void {
  for (const word of words) pushBytes(chunks, bytesOf(word));
}

/** One string of the format: a little-endian length, the bytes, zeros up to a multiple of 8. */
function pushBytes(chunks: Uint8Array[], bytes: Uint8Array): void {
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(bytes.length), true);
  chunks.push(length, bytes, new Uint8Array((8 - bytes.length % 8) % 8));
}

function bytesOf(content: Uint8Array | string): Uint8Array {
  return typeof content === "string" ? new TextEncoder().encode(content) : content;
}

function concat(chunks: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
