import { Failure } from "../../base/failure.ts";
import { snakeNames } from "../../base/snake_names.ts";
import { clock } from "../../runtime/current.ts";
import type { FailedPath } from "./each.ts";
import { answerJson } from "./server_answer.ts";
import type { ServerClient } from "./server_client.ts";
import type { StorePathArgument } from "./store_path_argument.ts";

/** A pin in the answer of the server's route `/pins/closures`. */
export interface Pinned {
  readonly root: string;
  readonly name: string | null;
  readonly stored: number;
  readonly missing: number;
  readonly bytes: number;
  readonly pinned_at: string;
}

/** One second more than the server's own limit. */
const COUNT_LIMIT_MS = 61_000;

/** Some 200 bytes for each pin. */
const LIST_BYTES_MAX = 256 << 20;

/** Every pin, in the order of pinning. */
export async function pinnedClosures(
  client: Pick<ServerClient, "request">,
): Promise<readonly Pinned[]> {
  const limits = { limitMs: COUNT_LIMIT_MS, bytesMax: LIST_BYTES_MAX };
  const pins = snakeNames(await answerJson(client, "/pins/closures", limits));
  if (Array.isArray(pins) && pins.every(isPinned)) return pins;
  throw new Failure("corrupt", "Cannot read the server's list of pins: is it larder?");
}

const LOOK_EVERY_MS = 250;

/**
 * The pinned roots whose closure is incomplete on the server. Waits up to `waitMaxMs`: the server
 * keeps a NAR file once it is verified, and if there is room.
 */
export async function notKept(
  client: Pick<ServerClient, "request">,
  targets: readonly StorePathArgument[],
  waitMaxMs: number,
): Promise<readonly FailedPath[]> {
  for (const untilMs = clock.nowMs() + waitMaxMs;;) {
    const pins = await pinnedClosures(client);
    const short = targets.flatMap(({ given, storePathHash }) => {
      const missing = pins.find(({ root }) => root === storePathHash)?.missing ?? 0;
      return missing > 0 ? [{ name: given, reason: `${missing} of its paths are not kept` }] : [];
    });
    if (short.length === 0 || clock.nowMs() > untilMs) return short;
    await clock.pause(LOOK_EVERY_MS);
  }
}

// The server's text reaches the terminal, so only larder's own form is valid.
const ROOT_REGEXP = /^[0-9a-z]{32}$/;
const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

function isPinned(value: unknown): value is Pinned {
  const { root, name, stored, missing, bytes, pinned_at } = (value ?? {}) as Partial<Pinned>;
  return ROOT_REGEXP.test(String(root)) && (name === null || NAME_REGEXP.test(String(name))) &&
    [stored, missing, bytes].every((count) => Number.isSafeInteger(count)) &&
    TIME_REGEXP.test(String(pinned_at));
}
