import pLimit from "p-limit";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { DecodeBody, EncodedOrder } from "../../upstream/upstream.ts";
import { decodeBody } from "./decode_body.ts";
import type { DecodedBody, NarVerifier } from "./nar_verifier.ts";

/** Honest bodies take some milliseconds. */
const BODY_BUDGET_MS = 100;

type BodyDecoder = Pick<NarVerifier, "decode">;

const oneAtATime = pLimit(1);

/** Decodes on the thread that calls it: a Worker, or a command that answers nobody. */
export const DECODER_HERE: BodyDecoder = {
  decode: (bytes, order) => oneAtATime(() => decodeBody(bytes, order)),
};

/** Decodes a small body of an upstream. Rejects with "overloaded" without memory for it. */
export async function decodeEncoded(
  decoder: BodyDecoder,
  bytes: Bytes,
  { codecs, bytesMax, upstream }: EncodedOrder,
): Promise<Exclude<DecodedBody, { kind: "shape" }>> {
  const turns = { client: upstream, budgetMs: BODY_BUDGET_MS };
  let plain = bytes;
  for (const compression of codecs.toReversed()) {
    const body = await decoder.decode(plain, { compression, bytesMax, turns, result: "bytes" });
    if (body.kind === "shape") throw new Failure("broken", "Cannot decode: got no bytes");
    if (body.kind !== "bytes") return body;
    plain = body.bytes;
  }
  return { kind: "bytes", bytes: plain };
}

/** The DecodeBody of a decoder. */
export function decodingWith(decoder: BodyDecoder): DecodeBody {
  return async (bytes, order) => {
    const body = await decodeEncoded(decoder, bytes, order);
    if (body.kind === "bytes") return body.bytes;
    const detail = body.kind === "damaged" ? body.detail : `it is over ${order.bytesMax} bytes`;
    throw new Failure("corrupt", `Cannot decode its body as ${order.codecs.join(", ")}: ${detail}`);
  };
}
