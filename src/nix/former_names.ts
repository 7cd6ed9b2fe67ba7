import { formatSha256 } from "./hash.ts";
import { type NarStem, parseNarStem } from "./nar_name.ts";
import type { Narinfo } from "./narinfo.ts";
import { type SecretKey, signatureOf } from "./signature.ts";
import type { TrustedKeys } from "./trusted_keys.ts";

/** A NAR has one or two of them. */
const NAMES_MAX = 64;

/** Behind the store path hash, in a binary cache. */
export const FORMER_NAMES_SUFFIX = ".names";

/** The longest text of former names. */
export const FORMER_NAMES_TEXT_MAX = NAMES_MAX * 512;

type SignedNar = Pick<Narinfo, "narHash" | "narSize">;

/**
 * The names by which clients remember a NAR, without their endings, each with a signature: the hash
 * in such a name is that of a file that is gone, so that nothing else shows which NAR it had.
 */
export function formatFormerNames(
  key: SecretKey,
  nar: SignedNar,
  stems: readonly NarStem[],
): string {
  const signed = (stem: NarStem) => key.sign(fingerprintOf(nar, stem)).text;
  return stems.map((stem) => `${stem} ${signed(stem)}\n`).join("");
}

/** The former names of the NAR in a text: those that a trusted key has signed, and all others. */
export function readFormerNames(
  text: string,
  nar: SignedNar,
  keys: Pick<TrustedKeys, "check">,
): { readonly signed: readonly NarStem[]; readonly otherCount: number } {
  const lines = text.split("\n").filter((line) => line !== "");
  const signed = lines.slice(0, NAMES_MAX).flatMap((line) => {
    const [name = "", ...rest] = line.split(" ");
    const [stem, signature] = [parseNarStem(name), signatureOf(rest.join(" "))];
    if (stem === undefined || signature === undefined) return [];
    return keys.check(signature, fingerprintOf(nar, stem)) === "verified" ? [stem] : [];
  });
  return { signed, otherCount: lines.length - signed.length };
}

/** No fingerprint of a narinfo begins so. */
function fingerprintOf({ narHash, narSize }: SignedNar, stem: NarStem): string {
  return `larder-former-name;1;${formatSha256(narHash)};${narSize};${stem}`;
}
