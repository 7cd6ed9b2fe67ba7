import { boundedText } from "../../base/bounded_text.ts";
import { Failure } from "../../base/failure.ts";
import type { RequestOptions, ServerClient } from "./server_client.ts";

/** Any answer of larder but the list of pins: the figures have some 100 KB. */
const ANSWER_BYTES_MAX = 8 << 20;

/** Upstream timeouts and retries may delay an answer so long. */
const ANSWER_LIMIT_MS = 60_000;

/**
 * Bounds of the values in an answer: each takes some 100 bytes of memory, however short its text.
 * A pin has eight, in 200 bytes; the figures have some 10,000.
 */
const VALUES_FREE = 100_000;
const BYTES_PER_VALUE = 16;

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
  if (hasTooManyValues(text)) {
    throw new Failure(
      "corrupt",
      `Cannot read ${route(path)}: it has too many values; is it larder?`,
    );
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure("corrupt", `Cannot read ${route(path)}: it is no JSON; is it larder?`);
  }
}

/** Counts commas and opening brackets: what stands in strings too, which have few. */
function hasTooManyValues(text: string): boolean {
  let left = VALUES_FREE + text.length / BYTES_PER_VALUE;
  for (let at = 0; at < text.length && left >= 0; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === OPEN_LIST || code === OPEN_RECORD) left--;
  }
  return left < 0;
}

const [COMMA, OPEN_LIST, OPEN_RECORD] = [",", "[", "{"].map((sign) => sign.charCodeAt(0));

/** Without the query, which may be long. */
function route(path: string): string {
  return path.split("?", 1)[0] ?? path;
}
