import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { formatBytes } from "../../base/format_units.ts";
import { PieceReader } from "../../base/piece_reader.ts";
import { streamFrom } from "../../base/stream_of.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { clock } from "../../runtime/current.ts";

/** A server that sends nothing for so long sends no more. */
export const NAR_IDLE_MAX_MS = 60_000;

/** What a compression may add to a NAR that it cannot make smaller. */
const ADDED_BYTES = 1 << 20;

/** The most bytes that the NAR file of a narinfo can have. */
export function fileBytesMaxOf({ fileSize, narSize }: Narinfo): number {
  return fileSize ?? narSize + Math.ceil(narSize / 8) + ADDED_BYTES;
}

/** A NAR file as it comes. It fails if it is longer than its narinfo allows, or stalls. */
export function boundedNar(body: ReadableStream<Bytes>, narinfo: Narinfo): ReadableStream<Bytes> {
  const reader = new PieceReader(body);
  const bytesMax = fileBytesMaxOf(narinfo);
  let received = 0;
  return streamFrom({
    async next() {
      const read = reader.read().then((piece) => ({ piece }));
      const result = await clock.within(read, NAR_IDLE_MAX_MS);
      received += result?.piece?.length ?? 0;
      if (result !== undefined && received <= bytesMax) return result.piece;
      await reader.cancel();
      const problem = result === undefined ? "stalled" : `is over ${formatBytes(bytesMax)}`;
      throw new Failure("corrupt", `its NAR file ${problem}`);
    },
    cancel: () => reader.cancel(),
  });
}
