import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { MemoryShare } from "../../base/memory_allowance.ts";
import { networkOf } from "../../base/network_of.ts";
import {
  type Codec,
  KNOWN_CONTENT_ENCODINGS,
  parseContentEncoding,
} from "../../nix/content_encoding.ts";
import type { DecodedBody, NarVerifier } from "../verify/nar_verifier.ts";
import type { Client } from "../nar/nar_answer.ts";
import { takeMemory } from "./upload_body.ts";
import { UploadRefused } from "./upload_outcome.ts";

/** Honest bodies take some milliseconds. */
const BODY_BUDGET_MS = 100;

/** The Content-Encoding of an upload. Throws UploadRefused for an unknown one, and for several. */
export function contentCoding(header: string | null): Codec | "none" {
  const encoding = parseContentEncoding(header);
  if (encoding.kind === "known" && encoding.codecs.length <= 1) return encoding.codecs[0] ?? "none";
  throw new UploadRefused("encoding", `expected Content-Encoding ${KNOWN_CONTENT_ENCODINGS}`);
}

/** A client's encoded body in memory. */
export interface EncodedBody {
  readonly bytes: Bytes;
  readonly coding: Codec;
  /** The largest decoded body. */
  readonly bytesMax: number;
  /** The work ends with it. */
  readonly client: Client;
  /** Memory of the upload, of which the output takes its part before the work. */
  readonly share: MemoryShare;
}

/** The decoded bytes of a small body. Throws UploadRefused for damaged or larger ones. */
export async function decodedBody(
  decoder: Pick<NarVerifier, "decode">,
  body: EncodedBody,
): Promise<Bytes> {
  await takeMemory(body.share, body.bytesMax);
  const result = await decoded(decoder, body, "bytes");
  return result.kind === "bytes" ? result.bytes : NO_BYTES;
}

/** True if the body holds one JSON object. Throws UploadRefused for a damaged or larger one. */
export async function holdsObject(
  decoder: Pick<NarVerifier, "decode">,
  body: Omit<EncodedBody, "share">,
): Promise<boolean> {
  const result = await decoded(decoder, body, "shape");
  return result.kind === "shape" && result.isObject;
}

const NO_BYTES = new Uint8Array(0);

async function decoded(
  decoder: Pick<NarVerifier, "decode">,
  { bytes, coding, bytesMax, client }: Omit<EncodedBody, "share">,
  result: "bytes" | "shape",
): Promise<DecodedBody> {
  const { peer, signal, hungUp = signal } = client;
  const turns = { client: peer && networkOf(peer), budgetMs: BODY_BUDGET_MS };
  const order = { compression: coding, bytesMax, result, turns };
  const body = await decoder.decode(bytes, order, hungUp).catch((error) => {
    if (hungUp?.aborted) throw new UploadRefused("cut", "expected a client that waits");
    if (!(error instanceof Failure) || error.kind !== "overloaded") throw error;
    throw new UploadRefused("overloaded", "expected fewer uploads at a time");
  });
  if (body.kind === "damaged") {
    throw new UploadRefused("invalid", `expected a body in ${coding}: ${body.detail}`);
  }
  if (body.kind !== "too-large") return body;
  throw new UploadRefused("too-large", `expected at most ${bytesMax} bytes behind ${coding}`);
}
