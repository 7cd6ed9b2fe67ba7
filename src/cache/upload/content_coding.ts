import type { Bytes } from "../../base/bytes.ts";
import type { Compression } from "../../nix/compression.ts";
import { UploadRefused } from "./upload_outcome.ts";

/** Nix names its compressions as they are; HTTP has some of them. */
const CODINGS: Readonly<Record<string, Compression>> = {
  "identity": "none",
  "none": "none",
  "gzip": "gzip",
  "x-gzip": "gzip",
  "br": "br",
  "zstd": "zstd",
  "xz": "xz",
  "bzip2": "bzip2",
};

/** The Content-Encoding of an upload. Throws UploadRefused for one that larder cannot decode. */
export function contentCoding(header: string | null): Compression {
  const name = (header ?? "identity").trim().toLowerCase();
  if (Object.hasOwn(CODINGS, name)) return CODINGS[name] ?? "none";
  const known = "gzip, br, zstd, xz, bzip2 or none";
  throw new UploadRefused("encoding", `expected Content-Encoding ${known}`);
}

/** The decoded bytes of a small body. Throws UploadRefused for damaged or larger ones. */
export async function decodedBody(
  bytes: Bytes,
  { coding, bytesMax }: { readonly coding: Compression; readonly bytesMax: number },
): Promise<Bytes> {
  if (coding === "none") return bytes;
  // Loaded here: this thread decodes nothing else.
  const { decoded } = await import("../verify/decoders.ts");
  const pieces: Bytes[] = [];
  let byteLength = 0;
  try {
    const decoding = { compression: coding, narSizeMax: bytesMax };
    for await (const piece of decoded(new Blob([bytes]).stream(), decoding)) {
      byteLength += piece.length;
      if (byteLength > bytesMax) break;
      pieces.push(piece.slice());
    }
  } catch {
    throw new UploadRefused("invalid", `expected a body in ${coding}`);
  }
  if (byteLength <= bytesMax) return await new Blob(pieces).bytes();
  throw new UploadRefused("too-large", `expected at most ${bytesMax} bytes`);
}
