import { ByteBlocks } from "../../base/byte_blocks.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { MemoryAllowance, MemoryShare } from "../../base/memory_allowance.ts";
import { networkOf } from "../../base/network_of.ts";
import {
  type Codec,
  KNOWN_CONTENT_ENCODINGS,
  parseContentEncoding,
} from "../../nix/content_encoding.ts";
import type { Client } from "../nar/nar_answer.ts";
import type { DecodedBody, NarVerifier } from "../verify/nar_verifier.ts";

/** The body of an upload, as the client sends it. */
export interface UploadBody {
  /** `null`: it has no bytes. */
  readonly stream: ReadableStream<Bytes> | null;
  /** Length of the whole body; `undefined` if the client does not announce it. */
  readonly length: number | undefined;
  /** Fails the running read, if there is one: others need the memory of this body. */
  giveUp?(): void;
}

/** How long an upload waits for the memory of others. */
const MEMORY_WAIT_MS = 5_000;

/** The pieces of a body. Throws UploadRefused "cut" or "stalled" where it ends early. */
export async function* piecesOf({ stream }: UploadBody): AsyncGenerator<Bytes> {
  const reader = stream?.getReader();
  for (;;) {
    const { value, done } = await next(reader);
    if (done) return;
    yield value;
  }
}

async function next(
  reader: ReadableStreamDefaultReader<Bytes> | undefined,
): Promise<ReadableStreamReadResult<Bytes>> {
  try {
    if (reader !== undefined) return await reader.read();
  } catch (error) {
    const isStalled = error instanceof Failure && error.kind === "stalled";
    throw new UploadRefused(isStalled ? "stalled" : "cut", "expected the whole body");
  }
  return { done: true };
}

interface BodyLimits {
  readonly bytesMax: number;
  readonly allowance: MemoryAllowance;
}

/** A body in memory. Disposing of it gives the memory back. */
export interface CollectedBody extends Disposable {
  readonly bytes: Bytes;
  readonly share: MemoryShare;
}

/** Reads a small body. Throws UploadRefused where it is larger than `bytesMax`. */
export async function collectBody(
  body: UploadBody,
  { bytesMax, allowance }: BodyLimits,
): Promise<CollectedBody> {
  const tooLarge = () => new UploadRefused("too-large", `expected at most ${bytesMax} bytes`);
  if ((body.length ?? 0) > bytesMax) throw tooLarge();
  using held = new DisposableStack();
  const share = held.use(allowance.share());
  const blocks = new ByteBlocks();
  using _growing = share.growing(() => body.giveUp?.());
  for await (const piece of piecesOf(body)) {
    if (blocks.byteLength + piece.length > bytesMax) throw tooLarge();
    await takeMemory(share, blocks.growthFor(piece.length));
    blocks.add(piece);
  }
  const rest = held.move();
  return { bytes: blocks.joined(), share, [Symbol.dispose]: () => rest.dispose() };
}

/** Waits for the memory of others. Throws UploadRefused where they hold it for too long. */
export async function takeMemory(share: MemoryShare, bytes: number): Promise<void> {
  if (await share.takeWithin(bytes, MEMORY_WAIT_MS)) return;
  throw new UploadRefused("overloaded", "expected fewer uploads at a time");
}

/** Honest bodies take some milliseconds. */
const BODY_BUDGET_MS = 100;

/** The Content-Encoding of an upload. Throws UploadRefused for an unknown one, and for several. */
export function contentCoding(header: string | null): Codec | "none" {
  const encoding = parseContentEncoding(header);
  if (encoding.kind === "known" && encoding.codecs.length <= 1) return encoding.codecs[0] ?? "none";
  throw new UploadRefused("encoding", `expected Content-Encoding ${KNOWN_CONTENT_ENCODINGS}`);
}

/** A client's encoded body in memory. */
interface EncodedBody {
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

/** Reasons to refuse an upload. larder keeps nothing of it. */
export type UploadFault =
  /** The upload differs from its own claims, or larder lacks an entry that it needs. */
  | "invalid"
  /** Something else is here under its name. */
  | "conflict"
  /** The upload is larger than the limit. */
  | "too-large"
  /** The upload does not fit beside the stored bytes. */
  | "no-room"
  /** Its Content-Encoding is unknown. */
  | "encoding"
  /** Its client left in the middle of it. */
  | "cut"
  /** Its client stopped in the middle of it. */
  | "stalled"
  /** The server is out of memory for it, or too slow. */
  | "overloaded";

/** Result of an upload. */
export type UploadOutcome =
  | { readonly kind: "stored" }
  /** The same was here. */
  | { readonly kind: "known" }
  | UploadRefusal;

interface UploadRefusal {
  readonly kind: "refused";
  readonly fault: UploadFault;
  /** One line for the client: the expectation that the upload missed. */
  readonly line: string;
  /** The failure behind it, for the log; `undefined`: the upload itself, or a bound. */
  readonly cause?: unknown;
}

/** Ends an upload. */
export class UploadRefused extends Error {
  override readonly name = "UploadRefused";
  readonly fault: UploadFault;

  constructor(fault: UploadFault, line: string, cause?: unknown) {
    super(line, { cause });
    this.fault = fault;
  }
}

/** The outcome of `work`; a thrown UploadRefused is one, too. */
export async function outcomeOf(work: () => Promise<UploadOutcome>): Promise<UploadOutcome> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UploadRefused)) throw error;
    return { kind: "refused", fault: error.fault, line: error.message, cause: error.cause };
  }
}
