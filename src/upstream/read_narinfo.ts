import { Failure, messageOf } from "../base/failure.ts";
import { fingerprintOf } from "../nix/fingerprint.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import { parseNarinfo } from "../nix/narinfo_parse.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { TrustedKeys } from "../nix/trusted_keys.ts";
import { wrongKeyWords } from "./failure_hints.ts";
import { isBelow, type NarinfoReading, type UpstreamFailure } from "./upstream.ts";

/** The meaning of a status for the requested object. */
export type StatusMeaning = "found" | "absent" | "failed";

/** Every other status means "failed". */
const MEANINGS: readonly (readonly [StatusMeaning, statuses: readonly number[]])[] = [
  ["found", [200, 206]],
  // S3 without the right to list answers 403 for a missing object; Nix reads it the same way.
  ["absent", [403, 404, 410]],
];

export function readStatus(status: number): StatusMeaning {
  return MEANINGS.find(([, statuses]) => statuses.includes(status))?.[0] ?? "failed";
}

export interface ReadingRules {
  /** The upstream's URL: the NARs of its narinfos must lie below it. */
  readonly baseUrl: string;
  readonly keys: TrustedKeys;
  /** False accepts a narinfo that no trusted key signed. */
  readonly requireSignature: boolean;
}

/** Checks a narinfo's text: the requested store path, whole, and signed. */
export function readNarinfo(
  storePathHash: StorePathHash,
  text: string,
  rules: ReadingRules,
): NarinfoReading {
  let narinfo: Narinfo;
  try {
    narinfo = parseNarinfo(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return failed("garbage", messageOf(error));
  }
  if (narinfo.storePathHash !== storePathHash) {
    return differing(`Cannot use narinfo: it describes ${narinfo.storePath}`);
  }
  if (!isBelow(rules.baseUrl, narinfo.url)) {
    return differing(
      `Cannot use narinfo: its URL leaves the upstream: ${
        narinfo.url.replace(/\?.*$/s, "?(hidden)")
      }`,
    );
  }
  const trusted = rules.keys.signerOf(narinfo, fingerprintOf(narinfo)) !== undefined;
  if (!trusted && rules.requireSignature) {
    // Without a key of that name there is nothing to compare.
    const wrongKey = rules.keys.nameIn(narinfo);
    if (wrongKey !== undefined) {
      const detail = `Cannot trust narinfo: ${wrongKeyWords(wrongKey)}`;
      return { ...failed("untrusted", detail), differs: "signature", wrongKey };
    }
    const names = narinfo.signatures.map((signature) => signature.keyName).join(", ") || "nobody";
    return failed("untrusted", `Cannot trust narinfo: it is signed by ${names}`);
  }
  return { kind: "found", narinfo, trusted };
}

function failed(reason: UpstreamFailure, detail: string) {
  return { kind: "failed", reason, detail } as const;
}

function differing(detail: string): NarinfoReading {
  return { ...failed("garbage", detail), differs: "narinfo" };
}
