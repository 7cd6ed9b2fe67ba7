import { Failure } from "../base/failure.ts";
import type { NarRow } from "../metadata/metadata_store.ts";
import { announcedFileSize } from "./nar_naming.ts";
import { Mismatch } from "./download/mismatch.ts";
import { type PassedPart, passThrough } from "./download/pass_through.ts";
import { UnkeptBody, type UnkeptBodyDeps } from "./download/unkept_body.ts";
import { type NarAnswer, WHOLE_BYTES_MAX } from "./nar_answer.ts";

type Pieces = AsyncGenerator<Uint8Array<ArrayBuffer>>;

/**
 * A NAR file that is sent to one client without being kept. `undefined` when no upstream has it
 * now. A small one is here whole, and right, when this resolves.
 */
export async function openUnkept(
  deps: UnkeptBodyDeps,
  nar: NarRow,
  requestId: string,
): Promise<NarAnswer | undefined> {
  const body = await UnkeptBody.open(deps, nar, requestId);
  if (body === undefined) return undefined;
  const fileSize = announcedFileSize(nar) ?? body.fileSize;
  const facts = { source: "MISS", fileSize, tag: nar.fileHash } as const;
  const dispose = () => void body[Symbol.asyncDispose]();
  if (fileSize !== undefined && fileSize <= WHOLE_BYTES_MAX) {
    const whole = await gathered(piecesOf(body, nar, { start: 0, end: fileSize }));
    return {
      ...facts,
      whole: () => whole,
      read: async (start, end) => new Blob([whole.subarray(start, end)]).stream(),
      [Symbol.dispose]: dispose,
    };
  }
  return {
    ...facts,
    whole: () => undefined,
    read: async (start, end) => streamOf(piecesOf(body, nar, { start, end }), dispose),
    [Symbol.dispose]: dispose,
  };
}

/** A part of a NAR file for somebody who has begun to read it while it was to be kept. */
export async function* passedOn(
  deps: UnkeptBodyDeps,
  nar: NarRow,
  part: PassedPart & { readonly requestId: string },
): Pieces {
  const body = await UnkeptBody.open(deps, nar, part.requestId);
  if (body === undefined) {
    throw new Failure("upstream-down", "Cannot pass NAR on: no upstream has it", { nar: nar.name });
  }
  yield* piecesOf(body, nar, part);
}

async function* piecesOf(body: UnkeptBody, nar: NarRow, part: PassedPart): Pieces {
  try {
    yield* passThrough(body.pieces(), nar, part);
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    body.wrong(error);
    throw new Failure("absent", `Cannot pass NAR on: ${error.message}`, { nar: nar.name });
  } finally {
    await body[Symbol.asyncDispose]();
  }
}

async function gathered(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  return await new Blob(await Array.fromAsync(pieces)).bytes();
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
