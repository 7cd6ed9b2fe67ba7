import { clock } from "../../runtime/current.ts";
import { boundedText } from "../../base/bounded_text.ts";
import { bare } from "./client_check.ts";

const ANSWER_LIMIT_MS = 2_000;

/** A client has a few. */
const ASKED_MAX = 8;

const KEY_BYTES_MAX = 1_024;

export interface SubstitutersOrder {
  readonly substituters: readonly string[];
  /** The address of larder; `undefined`: unknown. */
  readonly url: string | undefined;
  /** Its public key; `undefined`: unknown. */
  readonly publicKey: string | undefined;
}

/** Substituters that are this larder under any name: they show its public key. */
export async function ownSubstituters(order: SubstitutersOrder): Promise<ReadonlySet<string>> {
  const { substituters, url, publicKey } = order;
  const http = substituters.filter((one) => /^https?:\/\//i.test(one)).slice(0, ASKED_MAX);
  const own = await Promise.all(http.map(async (one) => {
    if (url !== undefined && bare(one) === bare(url)) return [one];
    if (publicKey === undefined) return [];
    const shown = await clock.within(keyShownBy(bare(one)), ANSWER_LIMIT_MS);
    return shown === publicKey ? [one] : [];
  }));
  return new Set(own.flat());
}

/** `undefined` for a cache that shows none. */
async function keyShownBy(url: string): Promise<string | undefined> {
  using limit = clock.deadline(ANSWER_LIMIT_MS);
  try {
    const response = await fetch(`${url}/pubkey`, { signal: limit.signal, redirect: "manual" });
    if (response.status === 200) {
      return (await boundedText(response, { bytesMax: KEY_BYTES_MAX })).trim();
    }
    await response.body?.cancel();
  } catch {
    // An unreachable substituter is not ours to report.
  }
  return undefined;
}
