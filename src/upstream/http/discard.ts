import { wholeNumber } from "../../base/plain_number.ts";

/** Reading a body up to this size gives the connection back; cancelling closes it. */
const READ_BYTES_MAX = 4_096;

/** Reads or cancels a body that nobody needs. */
export async function discard(response: Response): Promise<void> {
  const announced = wholeNumber(response.headers.get("content-length")) ?? NaN;
  if (announced <= READ_BYTES_MAX) await response.bytes();
  else await response.body?.cancel();
}
