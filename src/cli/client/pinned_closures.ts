import { Failure } from "../../base/failure.ts";
import { counted } from "../../base/format_units.ts";
import { clock } from "../../runtime/current.ts";
import { type Completeness, isCompleteness } from "./completeness.ts";
import { isPinName } from "../../pins/pin_name.ts";
import type { FailedPath } from "./each.ts";
import { answerJson } from "./server_answer.ts";
import { ServerJson } from "./server_json.ts";
import type { ServerClient } from "./server_client.ts";
import type { StorePathArgument } from "./store_path_argument.ts";

/** A pin in the answer of the server's route `/pins/closures`. */
export interface Pinned extends Completeness {
  readonly root: string;
  readonly name: string | null;
  readonly stored: number;
  readonly missing: number;
  readonly bytes: number;
  /** The part of them that no other pin reaches. */
  readonly own_bytes?: number;
  readonly pinned_at: string;
  /** The names that hold it, if any. */
  readonly under?: readonly string[];
  /** True: names alone hold it. */
  readonly rolls?: true;
}

/** One second more than the server's own limit. */
const COUNT_LIMIT_MS = 61_000;

/** Some 200 bytes for each of 150,000 pins. */
const LIST_BYTES_MAX = 32 << 20;

/** Every pin, in the order of pinning. */
export async function pinnedClosures(
  client: Pick<ServerClient, "request">,
): Promise<readonly Pinned[]> {
  const limits = { limitMs: COUNT_LIMIT_MS, bytesMax: LIST_BYTES_MAX };
  const pins = await answerJson(client, "/pins/closures", limits);
  if (Array.isArray(pins) && pins.every(isPinned)) return pins;
  throw new Failure("corrupt", "Cannot read the server's list of pins: is it larder?");
}

const LOOK_EVERY_MS = 250;

/** While the server verifies files, a wait ends once none was kept for so long. */
const VERIFIES_ONE_FOR_MS = 600_000;

/**
 * The NAR files that are on the server whole, and wait for their check. 0 if it does not say: it is
 * another program, or wants another token.
 */
export async function filesInVerification(client: Pick<ServerClient, "request">): Promise<number> {
  try {
    const stats = new ServerJson(await answerJson(client, "/stats"));
    return stats.at("verification_backlog", "files").number ?? 0;
  } catch {
    return 0;
  }
}

/** Bytes that all pins keep together; `undefined` if the server does not say. */
export async function pinnedBytes(
  client: Pick<ServerClient, "request">,
): Promise<number | undefined> {
  try {
    return new ServerJson(await answerJson(client, "/stats")).at("size", "pinned_bytes").number;
  } catch {
    return undefined;
  }
}

/** Tells of files that count as missing until their check is over. */
export function inVerification(files: number): string {
  return `${counted(files, "NAR file")} still ${files === 1 ? "waits" : "wait"} for verification`;
}

/**
 * The pinned roots whose closure is incomplete on the server. Waits up to `waitMaxMs` behind the
 * last change, and for as long as the server verifies files: it keeps a NAR file once it is
 * verified, and if there is room.
 */
export async function notKept(
  client: Pick<ServerClient, "request">,
  targets: readonly StorePathArgument[],
  waitMaxMs: number,
): Promise<readonly FailedPath[]> {
  let last = Infinity;
  for (let changedAtMs = clock.nowMs();;) {
    const pins = await pinnedClosures(client);
    const short = targets.flatMap(({ given, storePathHash }) => {
      const missing = pins.find(({ root }) => root === storePathHash)?.missing ?? 0;
      return missing > 0 ? [{ given, missing }] : [];
    });
    const sum = short.reduce((total, { missing }) => total + missing, 0);
    if (sum === 0) return [];
    if (sum < last) changedAtMs = clock.nowMs();
    last = sum;
    const files = await filesInVerification(client);
    const limitMs = waitMaxMs > 0 && files > 0 ? VERIFIES_ONE_FOR_MS : waitMaxMs;
    if (clock.nowMs() >= changedAtMs + limitMs) {
      const more = files > 0 ? `: ${inVerification(files)}` : "";
      return short.map(({ given, missing }) => (
        { name: given, reason: `${missing} of its paths are not kept${more}` }
      ));
    }
    await clock.pause(LOOK_EVERY_MS);
  }
}

// The server's text reaches the terminal, so only larder's own form is valid.
const ROOT_REGEXP = /^[0-9a-z]{32}$/;
const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** True where root and name are of larder's form. */
export function isPinRoot({ root, name }: { readonly root?: unknown; readonly name?: unknown }) {
  return ROOT_REGEXP.test(String(root)) && (name === null || NAME_REGEXP.test(String(name)));
}

function isPinned(value: unknown): value is Pinned {
  const pin = (value ?? {}) as Partial<Pinned>;
  const { stored, missing, bytes, own_bytes, pinned_at, under = [] } = pin;
  return isPinRoot(pin) && isCompleteness(pin) &&
    [stored, missing, bytes, own_bytes ?? 0].every((count) => Number.isSafeInteger(count)) &&
    TIME_REGEXP.test(String(pinned_at)) && Array.isArray(under) &&
    under.every((one) => typeof one === "string" && isPinName(one));
}
