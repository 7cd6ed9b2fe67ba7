import { Failure } from "../../base/failure.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { RunBelow } from "../../telemetry/tracer.ts";
import type { NarPart } from "../download/download.ts";
import type { NarAnswer } from "../nar/nar_answer.ts";
import { announcedFileSize } from "../nar/nar_naming.ts";
import { PassThrough, type PassThroughDeps } from "./pass_through.ts";

/**
 * A NAR file for one client, without storing it. `undefined` when no upstream has it now. When this
 * resolves, a small file is complete and verified.
 */
export async function openPassThrough(
  deps: PassThroughDeps,
  nar: NarRow,
  requestId: string,
): Promise<NarAnswer | undefined> {
  const transfer = await PassThrough.open(deps, nar, { requestId });
  if (transfer === undefined) return undefined;
  const facts = { source: "MISS", tag: nar.fileHash } as const;
  const dispose = () => transfer[Symbol.dispose]();
  const whole = transfer.whole();
  if (whole !== undefined) {
    return {
      ...facts,
      fileSize: whole.length,
      whole() {
        dispose();
        return whole;
      },
      async read(start, end) {
        dispose();
        return new Blob([whole.subarray(start, end)]).stream();
      },
      [Symbol.asyncDispose]: async () => dispose(),
    };
  }
  return {
    ...facts,
    fileSize: announcedFileSize(nar) ?? transfer.fileSize,
    whole: () => undefined,
    read: async (start, end) => streamOf(transfer.pieces({ start, end }), dispose),
    [Symbol.asyncDispose]: async () => dispose(),
  };
}

/** The part for a client that has begun to read a download which then failed. */
export interface RestOptions extends NarPart {
  readonly requestId: string;
  /** The trace of the client's request: the rest starts after its span may have ended. */
  readonly run: RunBelow;
}

/** The rest of a NAR file that could not be stored. */
export async function* restPassedThrough(
  deps: PassThroughDeps,
  nar: NarRow,
  { requestId, run, ...rest }: RestOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const transfer = await run(() => PassThrough.open(deps, nar, { requestId, rest }));
  if (transfer === undefined) {
    const message = "Cannot pass NAR through: no upstream has it";
    throw new Failure("upstream-down", message, { nar: nar.name });
  }
  yield* transfer.pieces(rest);
}
