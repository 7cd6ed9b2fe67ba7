// The Worker that reads one pipe or device: before Deno 2.7 opening one blocks its thread until
// somebody writes.
import { files } from "../runtime/current.ts";
import { messageOf } from "./failure.ts";
import { formatBytes } from "./format_units.ts";
import { ByteBlocks } from "./byte_blocks.ts";
import { workerScope } from "./worker_scope.ts";

/** A path, and the longest text that it may have. */
export interface PipeOrder {
  readonly path: string;
  readonly bytesMax: number;
}

export type PipeAnswer = { readonly text: string } | { readonly error: string };

const scope = workerScope<PipeOrder, PipeAnswer>();

scope.onmessage = ({ data }) => {
  try {
    scope.postMessage({ text: read(data) });
  } catch (error) {
    scope.postMessage({ error: messageOf(error) });
  }
};

function read({ path, bytesMax }: PipeOrder): string {
  using file = files.openSync(path);
  const blocks = new ByteBlocks();
  const piece = new Uint8Array(1 << 16);
  for (let got = file.readSync(piece); got !== null; got = file.readSync(piece)) {
    if (blocks.byteLength + got > bytesMax) {
      throw new Error(`it is larger than ${formatBytes(bytesMax)}`);
    }
    blocks.add(piece.subarray(0, got));
  }
  return new TextDecoder().decode(blocks.joined());
}
