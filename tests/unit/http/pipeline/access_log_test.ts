import assert from "node:assert/strict";
import { Answer } from "../../../../src/http/message/message.ts";
import { RequestObserver } from "../../../../src/http/pipeline/request_observer.ts";
import type { Route } from "../../../../src/http/routes/router.ts";
import { clock } from "../../../../src/runtime/current.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

const NAR: Route = { name: "/nar/{name}", path: /^\/nar\//, streams: true, methods: {} };
const DOCUMENT: Route = { name: "/log/{name}", path: /^\/log\//, methods: {} };

const REQUEST = {
  method: "GET",
  route: NAR,
  status: 200,
  cacheResult: "HIT" as string | undefined,
  client: "192.0.2.7" as string | undefined,
  token: "ci" as string | undefined,
};

function logged(
  { method, route, status, cacheResult, client, token }: typeof REQUEST,
): Record<string, unknown> {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger("debug", { write: (text) => lines.push(JSON.parse(text)) });
  const observer = new RequestObserver({ metrics: undefined, log, scheme: "http" });
  const request = {
    ...{ method, url: "/nar/x.nar", headers: new Headers(), body: null },
    ...{ signal: new AbortController().signal, ...client === undefined ? {} : { peer: client } },
  };
  observer.answered({
    ...{ request, requestId: "r1", route, pull: undefined, span: undefined },
    caller: token === undefined ? undefined : { name: token, role: "read" },
    answer: new Answer("nine byte", status, cacheResult ? { "x-cache": cacheResult } : {}),
    startedAtMs: clock.nowMs(),
  });
  const [{ level: _, ts: __, duration_ms, ...facts } = {}] = lines;
  assert.equal(typeof duration_ms, "number");
  return facts;
}

Deno.test("access log: a line has the facts that are known, and no others", () => {
  const common = {
    ...{ method: "GET", route: "/nar/{name}", path: "/nar/x.nar", status: 200, bytes: 9 },
    ...{ outcome: "complete", request_id: "r1" },
  };
  assert.deepEqual(logged(REQUEST), {
    msg: "serving nar from cache",
    ...common,
    ...{ x_cache: "HIT", client: "192.0.2.7", token: "ci" },
  });
  const unknown = { ...REQUEST, cacheResult: undefined, client: undefined, token: undefined };
  assert.deepEqual(logged(unknown), { msg: "request", ...common });
});

Deno.test("access log: only a GET that a stored NAR answers is served from the cache", () => {
  const served = "serving nar from cache";
  for (const status of [200, 206, 307]) assert.equal(logged({ ...REQUEST, status })["msg"], served);
  const others: readonly Partial<typeof REQUEST>[] = [
    { status: 304 },
    { status: 404 },
    { method: "HEAD" },
    { route: DOCUMENT },
    { cacheResult: "MISS" },
    { cacheResult: "JOINED" },
  ];
  for (const other of others) {
    assert.equal(logged({ ...REQUEST, ...other })["msg"], "request", JSON.stringify(other));
  }
});
