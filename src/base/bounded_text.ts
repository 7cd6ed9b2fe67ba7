import { clock } from "../runtime/current.ts";
import type { Bytes } from "./bytes.ts";
import { ByteBlocks } from "./byte_blocks.ts";
import { Failure } from "./failure.ts";
import { counted, formatBytes } from "./format_units.ts";
import { PieceReader } from "./piece_reader.ts";
import { wholeNumber } from "./plain_number.ts";

export interface BodyBounds {
  readonly bytesMax: number;
  /** Time for the whole body. Default: that of its sender, or of the request's signal. */
  readonly limitMs?: number | undefined;
}

/** Reads a small body as text. Throws a Failure "corrupt" for one beyond the bounds. */
export async function boundedText(response: Response, bounds: BodyBounds): Promise<string> {
  return new TextDecoder().decode(await boundedBytes(response, bounds));
}

/** The same as bytes. */
export async function boundedBytes(
  response: Response,
  { bytesMax, limitMs }: BodyBounds,
): Promise<Bytes> {
  const announced = wholeNumber(response.headers.get("content-length"));
  if (announced !== undefined && announced > bytesMax) {
    await response.body?.cancel();
    throw tooLong(bytesMax);
  }
  // The client reads no more bytes than that.
  if (announced !== undefined && limitMs === undefined) return await response.bytes();
  if (response.body === null) return new Uint8Array();
  const reader = new PieceReader(response.body);
  const reading = readUpTo(reader, bytesMax);
  if (limitMs === undefined) return await reading;
  const bytes = await clock.within(reading, limitMs);
  if (bytes !== undefined) return bytes;
  // The read that goes on sees the end.
  reading.catch(() => undefined);
  await reader.cancel();
  const limit = counted(Math.ceil(limitMs / 1_000), "second");
  throw new Failure("corrupt", `the answer did not end within ${limit}`);
}

async function readUpTo(reader: PieceReader, bytesMax: number): Promise<Bytes> {
  const blocks = new ByteBlocks();
  for (let piece = await reader.read(); piece !== undefined; piece = await reader.read()) {
    if (blocks.byteLength + piece.length > bytesMax) {
      await reader.cancel();
      throw tooLong(bytesMax);
    }
    blocks.add(piece);
  }
  return blocks.joined();
}

function tooLong(bytesMax: number): Failure {
  return new Failure("corrupt", `the answer is over ${formatBytes(bytesMax)}`);
}
