import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { type FileHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { compress } from "./compressors.ts";
import type { NarFile } from "./dialects.ts";

export interface NarFileOptions {
  readonly compression: Compression;
  /** Into how many frames, one after the other. */
  readonly frames?: number;
  readonly stored?: boolean;
}

/** Every compressed form of a NAR, made at its first request and shared by all upstreams. */
const files = new WeakMap<Uint8Array, Map<string, Promise<NarFile>>>();

/** The NAR file of these bytes. */
export function narFileOf(
  nar: Bytes,
  { compression, frames = 1, stored = false }: NarFileOptions,
): Promise<NarFile> {
  const forms = files.get(nar) ?? new Map<string, Promise<NarFile>>();
  files.set(nar, forms);
  const form = `${compression} ${frames} ${stored}`;
  const file = forms.get(form) ?? makeFile(nar, { compression, frames, stored });
  forms.set(form, file);
  return file;
}

async function makeFile(
  nar: Bytes,
  { compression, frames, stored }: Required<NarFileOptions>,
): Promise<NarFile> {
  const frameBytes = Math.ceil(nar.length / frames);
  const parts: Bytes[] = [];
  for (let at = 0; at < nar.length; at += frameBytes) {
    parts.push(await compress(nar.subarray(at, at + frameBytes), compression, { stored }));
  }
  const [only] = parts;
  const bytes = parts.length === 1 && only ? only : await new Blob(parts).bytes();
  const digest = createHash("sha256").update(bytes).digest();
  return { compression, bytes, fileHash: sha256FromDigest(digest) as FileHash };
}
