import assert from "node:assert/strict";
import { Retries } from "../../../src/upstream/http/upstream_attempts.ts";

const busy = (headers: HeadersInit = {}, status = 503) => new Response(null, { status, headers });

Deno.test("asking again: only a busy upstream gets more requests, two at most", () => {
  for (const status of [200, 404, 500, 502]) {
    assert.equal(new Retries(3_000).after(busy({}, status)), undefined);
  }
  for (const status of [429, 503]) {
    const retries = new Retries(3_000);
    const pauses = [1, 2, 3].map(() => retries.after(busy({}, status)));
    assert.ok(pauses[0] !== undefined && pauses[0] >= 20 && pauses[0] < 30);
    assert.ok(pauses[1] !== undefined && pauses[1] >= 100 && pauses[1] < 150);
    assert.equal(pauses[2], undefined);
  }
});

Deno.test("asking again: Retry-After is kept to, in seconds and as a date of the same clock", () => {
  const date = "Fri, 01 Jan 2010 00:00:00 GMT";
  const later = "Fri, 01 Jan 2010 00:00:01 GMT";
  for (const headers of [{ "retry-after": "1" }, { "retry-after": later, date }]) {
    const pauseMs = new Retries(3_000).after(busy(headers));
    assert.ok(pauseMs !== undefined && pauseMs >= 1_000 && pauseMs < 1_010);
  }
  const past = new Retries(3_000).after(busy({ "retry-after": date }));
  assert.ok(past !== undefined && past < 10);
});

Deno.test("asking again: a long or unreadable Retry-After ends it", () => {
  for (const text of ["2", "3600", "soon", "Fri, 01 Jan 2100 00:00:00 GMT"]) {
    assert.equal(new Retries(60_000).after(busy({ "retry-after": text })), undefined, text);
  }
});

Deno.test("asking again: no pause goes beyond the limit", () => {
  assert.equal(new Retries(900).after(busy({ "retry-after": "1" })), undefined);
  assert.equal(new Retries(10).afterError(new Error("reset")), undefined);
});

Deno.test("asking again: not behind a refused connection", () => {
  const refused = "error sending request: client error (Connect): tcp connect error";
  assert.equal(new Retries(3_000).afterError(new TypeError(refused)), undefined);
  assert.notEqual(new Retries(3_000).afterError(new TypeError("connection reset")), undefined);
});

Deno.test("asking again: not on a port that fetch never connects to", async () => {
  // Newer Deno blocks this one, as browsers do; with older ones nobody is there.
  const failed = await fetch("http://127.0.0.1:1/").catch((error: unknown) => error);
  assert.ok(failed instanceof TypeError);
  assert.equal(new Retries(3_000).afterError(failed), undefined);
});

Deno.test("asking again: why it failed counts, also where fetch tells it in the cause", () => {
  const cause = new Error("client error (Connect): tcp connect error");
  const failed = new TypeError("fetch failed", { cause });
  assert.equal(new Retries(3_000).afterError(failed), undefined);
});
