import { ByteBlocks } from "../../base/byte_blocks.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { MemoryAllowance, MemoryShare } from "../../base/memory_allowance.ts";
import { UploadRefused } from "./upload_outcome.ts";

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

export interface BodyLimits {
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
