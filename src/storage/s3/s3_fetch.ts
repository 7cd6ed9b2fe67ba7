import { EitherSignal } from "../../base/either_signal.ts";
import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";

/** The longest wait for the head of a response without a body in its request. */
const HEAD_MAX_MS = 5_000;

/** The same where the body of a request comes first, or parts become an object. */
const WRITE_HEAD_MAX_MS = 60_000;

/** The SDK retries errors with this mark. It knows the errors of browsers and Node, not Deno's. */
class NoResponse extends Error {
  readonly $retryable = {};
}

/** `fetch` for the SDK: with a limit for the response's head, and with errors that it retries. */
export async function s3Fetch(given: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  // Another request would copy the body.
  const request = given instanceof Request ? given : new Request(given, init);
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
