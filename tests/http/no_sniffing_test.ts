import assert from "node:assert/strict";
import { PHASE_LIMITS_MS } from "../../src/http/server/connection.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "0".repeat(32);

/** Requests, and the status of each answer: of a route, of the shell, and of the server itself. */
const REQUESTS: Readonly<Record<string, number>> = {
  [requestText("GET", "/")]: 200,
  [requestText("HEAD", "/nix-cache-info")]: 200,
  [requestText("GET", "/metrics")]: 200,
  [requestText("GET", `/${HASH}.narinfo`)]: 404,
  [requestText("GET", "/nowhere")]: 404,
  [requestText("GET", "/%zz")]: 400,
  [requestText("PUT", "/pins")]: 405,
  ["GET /healthz HTTP/1.0\r\n\r\n"]: 200,
  ["GET /healthz HTTP/1.1\r\n\r\n"]: 400,
  [requestText("POST", "/pins", { "Expect": "nothing", "Content-Length": "1" })]: 417,
  [`GET /${"x".repeat(20_000)} HTTP/1.1\r\n\r\n`]: 414,
  [requestText("GET", "/healthz", { "A": "x".repeat(20_000) })]: 431,
  ["GET /healthz HTTP/1.1\r\nHos"]: 408,
};

Deno.test("no sniffing: every answer of any kind forbids browsers to guess its type", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const limitsMs = { ...PHASE_LIMITS_MS, head: 100 };
  await using server = cache.listen({ sweepEveryMs: 20, limitsMs });
  for (const [request, expected] of Object.entries(REQUESTS)) {
    const { status, headers } = await rawRequest(server.port, request);
    const option = headers.get("x-content-type-options");
    assert.deepEqual([status, option], [expected, "nosniff"], request.slice(0, 50));
  }
});
