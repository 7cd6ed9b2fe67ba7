/** A body up to this size is read, which gives the connection back; cancelling closes it. */
const READ_BYTES_MAX = 4_096;

/** Deals with a body that nobody wants. */
export async function discard(response: Response): Promise<void> {
  const announced = Number(response.headers.get("content-length") ?? NaN);
  if (announced <= READ_BYTES_MAX) await response.bytes();
  else await response.body?.cancel();
}
