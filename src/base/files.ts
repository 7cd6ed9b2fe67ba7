import { files } from "../runtime/current.ts";

/** Fills `bytes` from the position of `file`; returns the byte count, less only at its end. */
export function readFully(
  file: { readSync(into: Uint8Array): number | null },
  bytes: Uint8Array,
): number {
  let filled = 0;
  while (filled < bytes.length) {
    const got = file.readSync(bytes.subarray(filled));
    if (got === null) break;
    filled += got;
  }
  return filled;
}

export async function writeFully(
  file: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}

/** `undefined` for a missing file. */
export function fileBytes(path: string): number | undefined {
  try {
    return files.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

export function removeIfPresent(path: string, options: Deno.RemoveOptions = {}): void {
  try {
    files.removeSync(path, options);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
