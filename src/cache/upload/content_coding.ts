import type { Bytes } from "../../base/bytes.ts";
import {
  type Codec,
  KNOWN_CONTENT_ENCODINGS,
  parseContentEncoding,
} from "../../nix/content_encoding.ts";
import { UploadRefused } from "./upload_outcome.ts";

/** The Content-Encoding of an upload. Throws UploadRefused for an unknown one, and for several. */
export function contentCoding(header: string | null): Codec | "none" {
  const encoding = parseContentEncoding(header);
  if (encoding.kind === "known" && encoding.codecs.length <= 1) return encoding.codecs[0] ?? "none";
  throw new UploadRefused("encoding", `expected Content-Encoding ${KNOWN_CONTENT_ENCODINGS}`);
}

/** The decoded bytes of a small body. Throws UploadRefused for damaged or larger ones. */
export async function decodedBody(
  bytes: Bytes,
  { coding, bytesMax }: { readonly coding: Codec | "none"; readonly bytesMax: number },
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
