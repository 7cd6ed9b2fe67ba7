import type { NarinfoRow } from "../../metadata/metadata_store.ts";
import { formatFormerNames } from "../../nix/former_names.ts";
import type { NarStem } from "../../nix/nar_name.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import { type OwnSignature, signNarinfo } from "../../nix/sign_narinfo.ts";
import type { SecretKey } from "../../nix/signature.ts";

/** Adds our signature beside the upstream's. */
export interface Signer {
  sign(narinfo: Narinfo): OwnSignature | undefined;
  /** The text to serve: the stored one, with a signature of the current key. */
  textOf(row: NarinfoRow): string;
  /** The signed names by which clients remember the NAR; `undefined` without a key. */
  formerNames(
    nar: Pick<Narinfo, "narHash" | "narSize">,
    stems: readonly NarStem[],
  ): string | undefined;
}

/** A signer of narinfos with a trusted signature. Without a key it signs nothing. */
export function createSigner(key: SecretKey | undefined): Signer {
  const publicKey = key?.publicKey.text;

  function sign(narinfo: Narinfo): OwnSignature | undefined {
    return key && signNarinfo(key, narinfo);
  }

  return {
    sign,
    formerNames: (nar, stems) => key && formatFormerNames(key, nar, stems),
    textOf(row) {
      if (publicKey === undefined || !row.trusted) return row.body;
      const kept = row.ownSignature;
      // The key may have changed since the narinfo was stored; signing takes 20 µs.
      const signature = kept?.publicKey === publicKey ? kept : sign(parseNarinfo(row.body));
      return signature === undefined ? row.body : `${row.body}Sig: ${signature.text}\n`;
    },
  };
}
