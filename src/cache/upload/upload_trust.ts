import type { Narinfo } from "../../nix/narinfo.ts";
import type { PublicKey } from "../../nix/signature.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";

export interface UploadTrustSettings {
  /** Keys of which one must have signed each upload. */
  readonly uploadKeys: readonly PublicKey[];
  /** Keys of upstreams: they authorize no upload, but vouch for its facts. */
  readonly upstreamKeys: readonly PublicKey[];
  /** True: without upload keys larder refuses every upload. */
  readonly requireSignature: boolean;
  /** True where an upload needs a token: its client is trusted. */
  readonly hasWriteToken: boolean;
}

const NO_KEY = "expected a signature of a trusted upload key, and none is set";
const NO_TOKEN = "expected a write token or a signature by --cache-trusted-upload-key, " +
  "and none is set";

/** Rules of trusted uploads, beside their tokens. */
export class UploadTrust {
  readonly #keys: TrustedKeys | undefined;
  readonly #allKeys: TrustedKeys;
  readonly #line: string;
  /** The reason why larder refuses every upload; `undefined` if it may accept some. */
  readonly closed: string | undefined;

  constructor(settings: UploadTrustSettings) {
    const { uploadKeys, upstreamKeys, requireSignature, hasWriteToken } = settings;
    const needsKey = uploadKeys.length > 0 || requireSignature;
    this.#keys = needsKey ? new TrustedKeys(uploadKeys) : undefined;
    this.#allKeys = new TrustedKeys([...uploadKeys, ...upstreamKeys]);
    this.#line = `expected a signature of ${namesOf(uploadKeys)}`;
    // An upstream signs for everybody, so its key says nothing about the uploader.
    if (uploadKeys.length > 0) this.closed = undefined;
    else if (requireSignature) this.closed = NO_KEY;
    else this.closed = hasWriteToken ? undefined : NO_TOKEN;
  }

  /** True where a trusted key has signed the narinfo. */
  isSigned(narinfo: Narinfo): boolean {
    return this.#allKeys.signerOf(narinfo) !== undefined;
  }

  /** The signature that the narinfo lacks, for the answer; `undefined` if it is trusted. */
  refusal(narinfo: Narinfo): string | undefined {
    if (this.closed !== undefined) return this.closed;
    if (this.#keys === undefined || this.#keys.signerOf(narinfo) !== undefined) return undefined;
    return this.#line;
  }
}

function namesOf(keys: readonly PublicKey[]): string {
  return [...new Set(keys.map(({ name }) => name))].join(" or ");
}
