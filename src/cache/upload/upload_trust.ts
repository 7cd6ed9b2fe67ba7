import type { Narinfo } from "../../nix/narinfo.ts";
import type { PublicKey } from "../../nix/signature.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";

export interface UploadTrustSettings {
  /** Keys of which one must have signed each upload. */
  readonly uploadKeys: readonly PublicKey[];
  /** True: without upload keys every upload is refused. */
  readonly requireSignature: boolean;
  /** True where an upload needs a token: its client is trusted. */
  readonly hasWriteToken: boolean;
  /** The keys of the upstreams. */
  readonly upstreamKeys: readonly PublicKey[];
}

/** Which uploads are trusted, beside their tokens. */
export class UploadTrust {
  readonly #keys: TrustedKeys | undefined;
  readonly #line: string;

  constructor(settings: UploadTrustSettings) {
    const { uploadKeys, requireSignature, hasWriteToken, upstreamKeys } = settings;
    if (uploadKeys.length > 0 || requireSignature) {
      this.#keys = new TrustedKeys(uploadKeys);
      this.#line = `expected a signature of ${namesOf(uploadKeys)}`;
    } else {
      // Who sends what an upstream has signed gives away nothing that larder would not fetch.
      this.#keys = hasWriteToken ? undefined : new TrustedKeys(upstreamKeys);
      this.#line = `expected a signature of ${namesOf(upstreamKeys)}, as no write token is set`;
    }
  }

  /** What was expected of the narinfo; `undefined` where it is trusted. */
  refusal(narinfo: Narinfo): string | undefined {
    if (this.#keys === undefined || this.#keys.signerOf(narinfo) !== undefined) return undefined;
    return this.#line;
  }
}

function namesOf(keys: readonly PublicKey[]): string {
  const names = [...new Set(keys.map(({ name }) => name))];
  return names.length === 0 ? "a trusted upload key, and none is set" : names.join(" or ");
}
