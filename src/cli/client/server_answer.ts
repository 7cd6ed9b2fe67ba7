import { boundedText } from "../../base/bounded_text.ts";
import { Failure } from "../../base/failure.ts";
import type { RequestOptions, ServerClient } from "./server_client.ts";

/** Any answer of larder but the list of pins: the figures have some 100 KB. */
const ANSWER_BYTES_MAX = 8 << 20;

/** Upstream timeouts and retries may delay an answer so long. */
const ANSWER_LIMIT_MS = 60_000;

export interface AnswerOptions extends RequestOptions {
  /** Default: 8 MiB. */
  readonly bytesMax?: number;
}

/**
 * The text that a server answers to a GET. All commands read answers here: any program may listen at
 * the address. `limitMs` bounds the headers, and the body once more. Throws a sentence for an answer
 * without end, and whatever the request throws.
 */
export async function answerText(
  client: Pick<ServerClient, "request">,
  path: string,
  { bytesMax = ANSWER_BYTES_MAX, ...options }: AnswerOptions = {},
): Promise<string> {
  const response = await client.request("GET", path, options);
  const { limitMs = ANSWER_LIMIT_MS } = options;
  try {
    return await boundedText(response, { bytesMax, limitMs });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure("corrupt", `Cannot read ${route(path)}: ${error.message}; is it larder?`);
  }
}

/** The same as JSON. */
export async function answerJson(
  client: Pick<ServerClient, "request">,
  path: string,
  options: AnswerOptions = {},
): Promise<unknown> {
  const text = await answerText(client, path, options);
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure("corrupt", `Cannot read ${route(path)}: it is no JSON; is it larder?`);
  }
}

/** Without the query, which may be long. */
function route(path: string): string {
  return path.split("?", 1)[0] ?? path;
}
