import { createHash } from "node:crypto";
import { files } from "../runtime/current.ts";

const READ_BYTES = 1 << 20;

/** The SHA-256 of all pieces, each of which `each` gets too. Requests go on between the pieces. */
export async function digestOf(
  pieces: AsyncIterable<Uint8Array>,
  each: (piece: Uint8Array) => unknown = () => undefined,
): Promise<Uint8Array> {
  const hash = createHash("sha256");
  for await (const piece of pieces) {
    hash.update(piece);
    await each(piece);
  }
  return hash.digest();
}

/** The bytes of a file. Each piece is valid until the next one. */
export async function* filePieces(path: string): AsyncGenerator<Uint8Array> {
  using file = await files.open(path);
  const bytes = new Uint8Array(READ_BYTES);
  for (let got = await file.read(bytes); got !== null; got = await file.read(bytes)) {
    yield bytes.subarray(0, got);
  }
}
