import assert from "node:assert/strict";
import { type AccessLine, logAccess } from "../../../../src/http/pipeline/request_observer.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

const LINE: AccessLine = {
  method: "GET",
  path: "/nar/x.nar",
  route: "/nar/{name}",
  isNar: true,
  status: 200,
  bytes: 9,
  durationMs: 1.4,
  outcome: "complete",
  cacheResult: "HIT",
  requestId: "r1",
  client: "192.0.2.7",
  token: "ci",
  more: {},
};

function logged(line: AccessLine): Record<string, unknown> {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger("info", { write: (text) => lines.push(JSON.parse(text)) });
  logAccess(log, "info", line);
  const [{ level: _, ts: __, ...facts } = {}] = lines;
  return facts;
}

Deno.test("access log: a line has the facts that are known, and no others", () => {
  const common = {
    ...{ method: "GET", route: "/nar/{name}", path: "/nar/x.nar", status: 200, bytes: 9 },
    ...{ duration_ms: 1, outcome: "complete", request_id: "r1" },
  };
  assert.deepEqual(logged(LINE), {
    msg: "serving nar from cache",
    ...common,
    ...{ x_cache: "HIT", client: "192.0.2.7", token: "ci" },
  });
  const unknown = { ...LINE, cacheResult: null, client: undefined, token: undefined };
  assert.deepEqual(logged(unknown), { msg: "request", ...common });
});

Deno.test("access log: only a GET that a stored NAR answers is served from the cache", () => {
  const served = "serving nar from cache";
  for (const status of [200, 206, 307]) assert.equal(logged({ ...LINE, status })["msg"], served);
  const others: readonly Partial<AccessLine>[] = [
    { status: 304 },
    { status: 404 },
    { method: "HEAD" },
    { isNar: false },
    { cacheResult: "MISS" },
    { cacheResult: "JOINED" },
  ];
  for (const other of others) {
    assert.equal(logged({ ...LINE, ...other })["msg"], "request", JSON.stringify(other));
  }
});
