import { boundedText } from "../../base/bounded_text.ts";
import { Failure } from "../../base/failure.ts";
import type { Shortfall } from "./each.ts";
import type { ServerClient } from "./server_client.ts";
import type { StorePathArgument } from "./store_path_argument.ts";

/** What the server says of a pin; see its route `/pins/closures`. */
export interface Pinned {
  readonly root: string;
  readonly name: string | null;
  readonly stored: number;
  readonly missing: number;
  readonly bytes: number;
  readonly pinnedAt: string;
}

/** A second more than the server itself allows for it. */
const COUNT_LIMIT_MS = 61_000;

/** Some 200 bytes a pin. */
const LIST_BYTES_MAX = 256 << 20;

/** Every pin, in the order of pinning. */
export async function pinnedClosures(
  client: Pick<ServerClient, "request">,
): Promise<readonly Pinned[]> {
  const answer = await client.request("GET", "/pins/closures", COUNT_LIMIT_MS);
  const text = await boundedText(answer, LIST_BYTES_MAX);
  try {
    const pins: unknown = JSON.parse(text);
    if (Array.isArray(pins) && pins.every(isPinned)) return pins;
  } catch {
    // Said below, as for any other answer that is not larder's.
  }
  throw new Failure("corrupt", "Cannot read the server's list of pins: is it larder?");
}

const LOOK_EVERY_MS = 250;

/**
 * Those of the pinned roots whose closure the server does not keep whole, `patienceMs` after it
 * was fetched: NAR files are verified before they are kept, and kept only where there is room.
 */
export async function notKept(
  client: Pick<ServerClient, "request">,
  targets: readonly StorePathArgument[],
  patienceMs: number,
): Promise<readonly Shortfall[]> {
  for (const untilMs = performance.now() + patienceMs;;) {
    const pins = await pinnedClosures(client);
    const short = targets.flatMap(({ given, storePathHash }) => {
      const missing = pins.find(({ root }) => root === storePathHash)?.missing ?? 0;
      return missing > 0 ? [{ what: given, reason: `${missing} of its paths are not kept` }] : [];
    });
    if (short.length === 0 || performance.now() > untilMs) return short;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

// A terminal shows them: nothing but what larder writes itself.
const ROOT_REGEXP = /^[0-9a-z]{32}$/;
const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

function isPinned(value: unknown): value is Pinned {
  const { root, name, stored, missing, bytes, pinnedAt } = (value ?? {}) as Partial<Pinned>;
  return ROOT_REGEXP.test(String(root)) && (name === null || NAME_REGEXP.test(String(name))) &&
    [stored, missing, bytes].every((count) => Number.isSafeInteger(count)) &&
    TIME_REGEXP.test(String(pinnedAt));
}
