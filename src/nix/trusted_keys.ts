import { fingerprintOf } from "./fingerprint.ts";
import type { Narinfo } from "./narinfo.ts";
import type { PublicKey } from "./signature.ts";

/** A pool of public keys: a signature of any of them is enough, whoever served it. */
export class TrustedKeys {
  readonly #keysOfName: ReadonlyMap<string, readonly PublicKey[]>;

  constructor(keys: readonly PublicKey[]) {
    this.#keysOfName = Map.groupBy(keys, (key) => key.name);
  }

  /** The key whose signature verifies; `undefined` means that none does. */
  signerOf(narinfo: Narinfo, fingerprint = fingerprintOf(narinfo)): PublicKey | undefined {
    for (const signature of narinfo.signatures) {
      for (const key of this.#keysOfName.get(signature.keyName) ?? []) {
        if (key.verify(fingerprint, signature)) return key;
      }
    }
    return undefined;
  }
}
