import { fingerprintOf } from "./fingerprint.ts";
import type { Narinfo } from "./narinfo.ts";
import type { SecretKey } from "./signature.ts";

/** Our own signature of a narinfo, and the public key that verifies it. */
export interface OwnSignature {
  readonly publicKey: string;
  /** The value of the `Sig` field. */
  readonly text: string;
}

/** Signs the facts of a narinfo about its store object. The same key makes the same bytes again. */
export function signNarinfo(key: SecretKey, narinfo: Narinfo): OwnSignature {
  return { publicKey: key.publicKey.text, text: key.sign(fingerprintOf(narinfo)).text };
}
