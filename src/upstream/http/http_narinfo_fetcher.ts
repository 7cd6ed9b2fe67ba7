import type { SecretKey } from "../../nix/signature.ts";
import { signNarinfo } from "../../nix/sign_narinfo.ts";
import type { TrustedKeys } from "../../nix/trusted_keys.ts";
import type { HttpClient } from "../../runtime/net.ts";
import type { DecodeBody } from "../decode_body.ts";
import { readNarinfo } from "../read_narinfo.ts";
import type { DocumentReading, NarinfoReading } from "../upstream.ts";
import { failedReading } from "./failed_reading.ts";
import type { HttpUpstreamSettings } from "./http_client.ts";
import type { NarinfoFetcher, NarinfoOrder, NarinfoWatch } from "./narinfo_fetcher.ts";
import { readSmallDocument } from "./small_document.ts";
import { UpstreamAttempts } from "./upstream_attempts.ts";

export interface HttpNarinfoFetcherDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: HttpClient;
  /** Decodes what `fetch` does not. Default: such responses are refused. */
  readonly decode?: DecodeBody | undefined;
  readonly keys: TrustedKeys;
  readonly requireSignature: boolean;
  /** Signs every narinfo that a trusted key signed; default: signs none. */
  readonly secretKey?: SecretKey | undefined;
}

/** Fetches, parses and verifies the narinfos of one upstream, on the thread that calls it. */
export class HttpNarinfoFetcher implements NarinfoFetcher {
  readonly #deps: HttpNarinfoFetcherDeps;
  readonly #attempts: UpstreamAttempts;

  constructor(deps: HttpNarinfoFetcherDeps) {
    this.#deps = deps;
    this.#attempts = new UpstreamAttempts(deps.settings, deps.client);
  }

  async fetch(order: NarinfoOrder, watch: NarinfoWatch): Promise<NarinfoReading> {
    const { settings: { url: baseUrl }, decode, keys, requireSignature, secretKey } = this.#deps;
    const { storePathHash, headers, isFinal } = order;
    const url = `${baseUrl}/${storePathHash}.narinfo`;
    const document = await this.#attempts.run(
      url,
      { headers, isFinal, ...watch },
      (response) => readSmallDocument(response, { decode, upstream: baseUrl }),
    )
      .catch((error): DocumentReading => failedReading(error));
    if (document.kind !== "found") return document;
    const rules = { baseUrl, keys, requireSignature };
    const reading = readNarinfo(storePathHash, document.text, rules);
    if (secretKey === undefined || reading.kind !== "found" || !reading.trusted) return reading;
    return { ...reading, ownSignature: signNarinfo(secretKey, reading.narinfo) };
  }
}
