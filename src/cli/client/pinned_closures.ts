import { Failure } from "../../base/failure.ts";
import { counted } from "../../base/format_units.ts";
import { clock } from "../../runtime/current.ts";
import { isPinName } from "../../pins/pin_name.ts";
import type { FailedPath } from "./each.ts";
import { answerJson } from "./server_answer.ts";
import { ServerJson } from "./server_json.ts";
import type { ServerClient } from "./server_client.ts";
import { PACKAGE_NAME_REGEXP, type StorePathArgument } from "./store_path_argument.ts";

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
  return await figureOf(client, "verification_backlog", "files") ?? 0;
}

/** Bytes that all pins keep together; `undefined` if the server does not say. */
export function pinnedBytes(client: Pick<ServerClient, "request">): Promise<number | undefined> {
  return figureOf(client, "size", "pinned_bytes");
}

async function figureOf(
  client: Pick<ServerClient, "request">,
  ...names: readonly string[]
): Promise<number | undefined> {
  const stats = await answerJson(client, "/stats").catch(() => undefined);
  return new ServerJson(stats).at(...names).number;
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
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const ROOT_REGEXP = /^[0-9a-z]{32}$/;

/** True where root and name are of larder's form. */
export function isPinRoot({ root, name }: { readonly root?: unknown; readonly name?: unknown }) {
  return ROOT_REGEXP.test(String(root)) &&
    (name === null || PACKAGE_NAME_REGEXP.test(String(name)));
}

function isPinned(value: unknown): value is Pinned {
  const pin = (value ?? {}) as Partial<Pinned>;
  const { stored, missing, bytes, own_bytes, pinned_at, under = [] } = pin;
  return isPinRoot(pin) && isCompleteness(pin) &&
    [stored, missing, bytes, own_bytes ?? 0].every((count) => Number.isSafeInteger(count)) &&
    TIME_REGEXP.test(String(pinned_at)) && Array.isArray(under) &&
    under.every((one) => typeof one === "string" && isPinName(one));
}

/** The last look at a pinned closure, in the server's answer. */
export interface Look {
  readonly at: string;
  readonly paths: number;
  readonly missing: number;
  readonly upstream: number;
  readonly nowhere: number;
  readonly unasked?: number;
  readonly examples: readonly string[];
}

/** What a pin says of its completeness. */
export interface Completeness {
  readonly keep_complete?: boolean;
  readonly complete?: boolean | null;
  readonly look?: Look | null;
}

/** A name may have 211 characters, and a screen has 100 columns. */
const NAME_MAX = 24;
const EXAMPLE_MAX = 96;

const COUNTS = ["paths", "missing", "upstream", "nowhere"] as const;

/** True for larder's own form: the text reaches the terminal. */
export function isCompleteness({ keep_complete, complete, look }: Completeness): boolean {
  const isFlag = (value: unknown) => value === undefined || value === null || value === !!value;
  return isFlag(keep_complete) && isFlag(complete) && (look === undefined || look === null ||
    TIME_REGEXP.test(look.at) && COUNTS.every((name) => Number.isSafeInteger(look[name])) &&
      Number.isSafeInteger(look.unasked ?? 0) &&
      Array.isArray(look.examples) &&
      look.examples.every((name) => PACKAGE_NAME_REGEXP.test(name)));
}

/** In one column: "kept" for a complete closure that larder keeps so. */
export function completenessWord(
  { keep_complete, complete, look, missing = 0 }: Completeness & Partial<Pick<Pinned, "missing">>,
): string {
  const gone = Math.max(missing, look?.missing ?? 0);
  if (gone > 0) return `${gone} missing`;
  // The first look begins within a minute of the pin.
  if (complete !== true) return "counting";
  return keep_complete ? "kept" : "yes";
}

/** Where the missing paths are, and which they are; none for a closure that lacks nothing. */
export function missingLines(
  { name, root, look }: Pick<Pinned, "name" | "root"> & Completeness,
): readonly string[] {
  if (!look || look.missing === 0) return [];
  const { missing, upstream, nowhere, unasked = 0, examples } = look;
  const unknown = missing - upstream - nowhere - unasked;
  const parts = [
    [upstream, "upstream still has"],
    [nowhere, "nowhere"],
    [unknown, "unknown"],
    [unasked, "not asked yet"],
  ] as const;
  const where = parts.filter(([count]) => count > 0).map(([count, words]) => `${count} ${words}`);
  const more = missing - examples.length;
  return [
    `${cut(name ?? root, NAME_MAX)}: ${counted(missing, "path")} missing (${where.join(", ")}):`,
    ...examples.map((example) => `  ${cut(example, EXAMPLE_MAX)}`),
    ...more > 0 ? [`  and ${more} more`] : [],
  ];
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
