import { boundedBytes } from "../../base/bounded_text.ts";
import { EitherSignal } from "../../base/either_signal.ts";
import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";

/** The longest wait for the head of a response without a body in its request. */
const HEAD_MAX_MS = 5_000;

/** The same where the body of a request comes first, or parts become an object. */
const WRITE_HEAD_MAX_MS = 60_000;

/** Every answer but the bytes of a NAR: a page of 1,000 keys has half a MiB. */
const TEXT_BYTES_MAX = 8 << 20;

/** Time for such an answer. While a store joins parts, it sends spaces. */
const TEXT_MAX_MS = 600_000;

/** The SDK retries errors with this mark. It knows the errors of browsers and Node, not Deno's. */
class NoResponse extends Error {
  readonly $retryable = {};
}

/**
 * `fetch` for the SDK: with limits for the response's head and for all but the bytes of a NAR, and
 * with errors that it retries.
 */
export async function s3Fetch(given: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  // Another request would copy the body.
  const request = given instanceof Request ? given : new Request(given, init);
  const response = await head(request);
  // larder reads NARs by ranges alone.
  const isNar = request.headers.has("range") && response.ok;
  if (isNar || response.body === null) return response;
  const bounds = { bytesMax: TEXT_BYTES_MAX, limitMs: TEXT_MAX_MS };
  const { status, statusText, headers } = response;
  return new Response(await boundedBytes(response, bounds), { status, statusText, headers });
}

async function head(request: Request): Promise<Response> {
  const isWrite = request.method === "PUT" || request.method === "POST";
  const limitMs = isWrite ? WRITE_HEAD_MAX_MS : HEAD_MAX_MS;
  using deadline = clock.deadline(limitMs);
  const { signal: late } = deadline;
  try {
    return await fetch(request, { signal: new EitherSignal(request.signal, late).signal });
  } catch (error) {
    request.signal.throwIfAborted();
    throw new NoResponse(messageOf(late.aborted ? late.reason : error), { cause: error });
  }
}
