import type { Narinfo } from "./narinfo.ts";
import { NARINFO_SIGNATURES_MAX, SIGNATURES_OF_NAME_MAX } from "./narinfo_parse.ts";

/**
 * The narinfo with the signatures that only `other` has, as far as a narinfo may have them. The
 * same narinfo where there are none. Both must have one fingerprint.
 */
export function withSignatures(narinfo: Narinfo, other: Narinfo): Narinfo {
  const known = new Set(narinfo.signatures.map(({ text }) => text));
  const room = NARINFO_SIGNATURES_MAX - known.size;
  const further = other.signatures.filter(({ text }) => !known.has(text)).slice(0, room);
  const all = [...narinfo.signatures, ...further];
  const ofNames = [...Map.groupBy(all, ({ keyName }) => keyName).values()];
  const kept = new Set(ofNames.flatMap((ones) => ones.slice(0, SIGNATURES_OF_NAME_MAX)));
  const added = further.filter((one) => kept.has(one));
  if (added.length === 0) return narinfo;
  return {
    ...narinfo,
    signatures: [...narinfo.signatures, ...added],
    lines: [...narinfo.lines, ...added.map(({ text }) => ({ key: "Sig", value: text }))],
  };
}
