import { fingerprintOf } from "./fingerprint.ts";
import type { Narinfo } from "./narinfo.ts";
import type { PublicKey, Signature } from "./signature.ts";

export type SignatureCheck = "verified" | "unknown key" | "wrong";

/** The trusted public keys. A signature of any of them suffices, from any upstream. */
export class TrustedKeys {
  readonly #keysOfName: ReadonlyMap<string, readonly PublicKey[]>;

  constructor(keys: readonly PublicKey[]) {
    this.#keysOfName = Map.groupBy(keys, (key) => key.name);
  }

  /** The name of the first signature that has a key of its name here; `undefined`: none has. */
  nameIn({ signatures }: Pick<Narinfo, "signatures">): string | undefined {
    return signatures.find(({ keyName }) => this.#keysOfName.has(keyName))?.keyName;
  }

  /** The result for a signature over this fingerprint. "unknown key": none of its name is here. */
  check(signature: Signature, fingerprint: string): SignatureCheck {
    const keys = this.#keysOfName.get(signature.keyName) ?? [];
    if (keys.length === 0) return "unknown key";
    return keys.some((key) => key.verify(fingerprint, signature)) ? "verified" : "wrong";
  }

  /** The key that verifies one of the narinfo's signatures; `undefined` if none does. */
  signerOf(narinfo: Narinfo, fingerprint = fingerprintOf(narinfo)): PublicKey | undefined {
    for (const signature of narinfo.signatures) {
      for (const key of this.#keysOfName.get(signature.keyName) ?? []) {
        if (key.verify(fingerprint, signature)) return key;
      }
    }
    return undefined;
  }
}
