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
