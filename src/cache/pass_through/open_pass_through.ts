import { ByteBlocks } from "../../base/byte_blocks.ts";
import { Failure } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { RunBelow } from "../../telemetry/tracer.ts";
import { announcedFileSize, fileSizeLimit } from "../nar_naming.ts";
import type { PassedPart } from "../download/download.ts";
import { UnkeptTransfer, type UnkeptTransferDeps, WrongNar } from "./unkept_transfer.ts";
import { type NarAnswer, WHOLE_BYTES_MAX } from "../nar_answer.ts";

type Pieces = AsyncGenerator<Uint8Array<ArrayBuffer>>;

/**
 * A NAR file that is sent to one client without being kept. `undefined` when no upstream has it
 * now. A small one is here whole, and right, when this resolves: one that is wrong is asked of the
 * next upstream.
 */
export async function openUnkept(
  deps: UnkeptTransferDeps,
  nar: NarRow,
  requestId: string,
): Promise<NarAnswer | undefined> {
  for (const except = new Set<string>();;) {
    const transfer = await UnkeptTransfer.open(deps, nar, { requestId, except });
    if (transfer === undefined) return undefined;
    try {
      return await answerOf(transfer, nar);
    } catch (error) {
      // Each time one less is left.
      if (!(error instanceof WrongNar) || except.has(error.upstream)) throw error;
      except.add(error.upstream);
    }
  }
}

async function answerOf(transfer: UnkeptTransfer, nar: NarRow): Promise<NarAnswer> {
  const fileSize = announcedFileSize(nar) ?? transfer.fileSize;
  const fileSizeMax = fileSize ?? fileSizeLimit(nar);
  const facts = { source: "MISS", fileSize, tag: nar.fileHash } as const;
  const dispose = () => void transfer[Symbol.asyncDispose]();
  if (fileSizeMax <= WHOLE_BYTES_MAX) {
    const whole = await gathered(transfer.pieces({ start: 0, end: fileSizeMax }));
    return {
      ...facts,
      fileSize: whole.length,
      whole: () => whole,
      read: async (start, end) => new Blob([whole.subarray(start, end)]).stream(),
      [Symbol.dispose]: dispose,
    };
  }
  return {
    ...facts,
    whole: () => undefined,
    read: async (start, end) => streamOf(transfer.pieces({ start, end }), dispose),
    [Symbol.dispose]: dispose,
  };
}

/** Who wants the rest of a NAR file that was to be kept when they began to read it. */
export interface PassedOnFor {
  readonly requestId: string;
  /** Their request's trace: the rest is asked for when nothing else tells of it any more. */
  readonly run: RunBelow;
}

/** A part of a NAR file for somebody who has begun to read it while it was to be kept. */
export async function* passedOn(
  deps: UnkeptTransferDeps,
  nar: NarRow,
  { requestId, run, ...part }: PassedPart & PassedOnFor,
): Pieces {
  const transfer = await run(() => UnkeptTransfer.open(deps, nar, { requestId }));
  if (transfer === undefined) {
    throw new Failure("upstream-down", "Cannot pass NAR on: no upstream has it", { nar: nar.name });
  }
  yield* transfer.pieces(part);
}

async function gathered(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const blocks = new ByteBlocks();
  for await (const piece of pieces) blocks.add(piece);
  return blocks.joined();
}

/** `dispose` ends what pieces that nobody has begun to read would not end. */
function streamOf(pieces: Pieces, dispose: () => void): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      dispose();
      await pieces.return(undefined);
    },
  }, { highWaterMark: 0 });
}
