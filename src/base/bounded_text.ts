import { ByteBlocks } from "./byte_blocks.ts";
import { Failure } from "./failure.ts";
import { PieceReader } from "./piece_reader.ts";
import { wholeNumber } from "./plain_number.ts";

/** Reads a small body as text. Throws a Failure "corrupt" when it is over `bytesMax`. */
export async function boundedText(response: Response, bytesMax: number): Promise<string> {
  const announced = wholeNumber(response.headers.get("content-length")) ?? NaN;
  if (announced > bytesMax) {
    await response.body?.cancel();
    throw tooLong(bytesMax);
  }
  if (announced <= bytesMax) return await response.text();
  if (response.body === null) return "";
  const reader = new PieceReader(response.body);
  const blocks = new ByteBlocks();
  for (let piece = await reader.read(); piece !== undefined; piece = await reader.read()) {
    if (blocks.byteLength + piece.length > bytesMax) {
      await reader.cancel();
      throw tooLong(bytesMax);
    }
    blocks.add(piece);
  }
  return new TextDecoder().decode(blocks.joined());
}

function tooLong(bytesMax: number): Failure {
  return new Failure("corrupt", `Cannot read document: it is over ${bytesMax} bytes`);
}
