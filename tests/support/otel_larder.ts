import assert from "node:assert/strict";
import type { FakeUpstream } from "./fake_upstream.ts";
import { type LarderProcess, type LogLine, startLarder } from "./larder_process.ts";
import type { StoreObject } from "./store_object.ts";

export const SIGNALS = ["traces", "metrics", "logs"] as const;

/** A larder that tells this receiver everything. */
export function startOtelLarder(
  upstream: FakeUpstream,
  otelUrl: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<LarderProcess> {
  return startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    // Its spans belong to the narinfo's trace; these tests follow the NAR's.
    "cache-prefetch": "false",
    "otel-enabled": "true",
    "otel-grpc-url": otelUrl,
    "prometheus-enabled": "true",
  }, environment);
}

/** Gets narinfo and NAR, the NAR with these headers. Resolves when its line is written. */
export async function pull(
  larder: LarderProcess,
  { storePathHash }: StoreObject,
  headers: { readonly "x-request-id": string } & Readonly<Record<string, string>>,
): Promise<void> {
  const narinfo = await (await fetch(`${larder.url}/${storePathHash}.narinfo`)).text();
  const path = /^URL: (.*)$/m.exec(narinfo)?.[1];
  const answer = await fetch(`${larder.url}/${path}`, { headers });
  await answer.bytes();
  const isHit = answer.headers.get("x-cache") === "HIT";
  const isOfThis = (line: LogLine) => line["request_id"] === headers["x-request-id"];
  await larder.logged(isHit ? "serving nar from cache" : "request", isOfThis);
}

/** Stops it, which must succeed. */
export async function stop(larder: LarderProcess): Promise<void> {
  larder.kill("SIGTERM");
  assert.equal((await larder.ended).code, 0);
}

/** How many records of each signal were dropped so far. */
export async function droppedCounts(larder: LarderProcess): Promise<readonly number[]> {
  const text = await (await fetch(`${larder.url}/metrics`)).text();
  return SIGNALS.map((signal) => {
    const line = new RegExp(`^larder_telemetry_dropped_total\\{signal="${signal}"\\} (\\d+)$`, "m");
    return Number(line.exec(text)?.[1]);
  });
}
