import denoJson from "../../../deno.json" with { type: "json" };
import { messageOf } from "../../base/failure.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import { DECODER_HERE, decodingWith } from "../../cache/verify/decode_encoded.ts";
import type { Settings } from "../../config/options.ts";
import { parseNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR, type StorePathHash } from "../../nix/store_path.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { SYSTEM_NET } from "../../runtime/system_net.ts";
import {
  createUpstreamClient,
  type HttpUpstreamSettings,
  UpstreamFetch,
} from "../../upstream/http/upstream_fetch.ts";
import {
  HttpNarinfoFetcher,
  HttpNarinfoSource,
  readSmallDocument,
} from "../../upstream/http/http_narinfo_source.ts";
import type { DocumentReading } from "../../upstream/upstream.ts";
import { caCertificates, upstreamSettings } from "../upstream_settings.ts";

/** Result of a probe of an upstream. */
export interface UpstreamProbe {
  readonly url: string;
  readonly reach:
    | { readonly kind: "reached"; readonly latencyMs: number; readonly hasInfo: boolean }
    | { readonly kind: "refused"; readonly reason: string }
    | { readonly kind: "unreachable"; readonly reason: string };
  /** The signer of a narinfo of this upstream. `undefined`: it has none of the tried paths. */
  readonly signature:
    | { readonly kind: "trusted"; readonly keyName: string }
    | {
      readonly kind: "untrusted";
      readonly reason: string;
      readonly wrongKey?: string | undefined;
    }
    | { readonly kind: "failed"; readonly reason: string }
    | undefined;
  /** How far this clock is ahead of the upstream's; `undefined`: it sent no `Date`. */
  readonly clockLeadMs: number | undefined;
  /** The longest wait for an answer that larder accepts. */
  readonly headerTimeoutMs: number;
}

export interface ProbeOrder {
  readonly settings: Settings;
  /** Paths to try, by upstream: the first that it has shows how it signs. */
  readonly pathsOf: (upstream: string) => readonly StorePathHash[];
  readonly signal: AbortSignal;
}

const DECODE = decodingWith(DECODER_HERE);

/** More requests would only be for paths that an upstream no longer has. */
const PATHS_MAX = 4;

/** Asks each upstream as the server would: with its certificates, credentials and timeouts. */
export async function probeUpstreams(order: ProbeOrder): Promise<readonly UpstreamProbe[]> {
  const { settings } = order;
  const all = await upstreamSettings(settings, `larder/${denoJson.version}`);
  using client = createUpstreamClient(SYSTEM_NET, await caCertificates(settings));
  return await Promise.all(all.map((http) => probe(http, client, order)));
}

async function probe(
  http: HttpUpstreamSettings,
  client: HttpClient,
  { settings, pathsOf, signal }: ProbeOrder,
): Promise<UpstreamProbe> {
  const requests = new UpstreamFetch(http, client);
  const { url, headerTimeoutMs } = http;
  const base = { url, headerTimeoutMs, signature: undefined, clockLeadMs: undefined };
  try {
    await fetchCacheInfo(requests, url, signal);
    // The second request finds the connection open.
    const startedAtMs = clock.nowMs();
    const { status, reading, clockLeadMs } = await fetchCacheInfo(requests, url, signal);
    const latencyMs = clock.nowMs() - startedAtMs;
    if (status !== 200 && status !== 404) {
      const given = http.authorization === undefined ? "" : ", with its credentials";
      const reason = `HTTP status ${status}${given}`;
      return { ...base, clockLeadMs, reach: { kind: "refused", reason } };
    }
    const problem = status === 200 ? problemOf(reading) : undefined;
    if (problem !== undefined) {
      return { ...base, clockLeadMs, reach: { kind: "refused", reason: problem } };
    }
    const keys = new TrustedKeys(settings["cache.upstream-public-key"]);
    const shared = { settings: http, client, decode: DECODE };
    const fetcher = new HttpNarinfoFetcher({ ...shared, keys, requireSignature: true });
    const source = new HttpNarinfoSource({ ...shared, fetcher });
    const signature = await signatureOf(source, keys, pathsOf(url), signal);
    const reach = { kind: "reached", latencyMs, hasInfo: status === 200 } as const;
    return { ...base, clockLeadMs, reach, signature };
  } catch (error) {
    return { ...base, reach: { kind: "unreachable", reason: plainReason(error) } };
  }
}

/** Reason without the URL, which names the finding. */
function plainReason(error: unknown): string {
  return messageOf(error).replace(/error sending request for url \([^)]*\): /, "");
}

async function fetchCacheInfo(requests: UpstreamFetch, url: string, signal: AbortSignal) {
  return await requests.run(`${url}/nix-cache-info`, { signal }, async (response) => {
    const atMs = clock.wallMs();
    const { status, headers } = response;
    const reading = await readSmallDocument(response, { decode: DECODE, upstream: url });
    return { status, reading, clockLeadMs: clockLeadOf(headers, atMs) };
  });
}

/** The difference to `Date`. A cache on the way may send an old one, with its `Age`. */
function clockLeadOf(headers: Headers, atMs: number): number | undefined {
  const dateMs = Date.parse(headers.get("date") ?? "");
  if (Number.isNaN(dateMs)) return undefined;
  const ageMs = 1_000 * (wholeNumber(headers.get("age")) ?? 0);
  const [fresh, aged] = [atMs - dateMs, atMs - dateMs - ageMs];
  return Math.abs(fresh) < Math.abs(aged) ? fresh : aged;
}

function problemOf(reading: DocumentReading): string | undefined {
  if (reading.kind !== "found") return reading.kind === "failed" ? reading.detail : undefined;
  try {
    const { storeDir } = parseNixCacheInfo(reading.text);
    return storeDir === STORE_DIR ? undefined : `its store directory is ${storeDir}`;
  } catch (error) {
    return messageOf(error);
  }
}

async function signatureOf(
  source: HttpNarinfoSource,
  keys: TrustedKeys,
  paths: readonly StorePathHash[],
  signal: AbortSignal,
): Promise<UpstreamProbe["signature"]> {
  for (const path of paths.slice(0, PATHS_MAX)) {
    const reading = await source.narinfo(path, signal);
    if (reading.kind === "absent") continue;
    if (reading.kind === "found") {
      return { kind: "trusted", keyName: keys.signerOf(reading.narinfo)?.name ?? "" };
    }
    const { reason, detail, wrongKey } = reading;
    if (reason !== "untrusted") return { kind: "failed", reason: detail };
    return { kind: "untrusted", reason: detail, wrongKey };
  }
  return undefined;
}
