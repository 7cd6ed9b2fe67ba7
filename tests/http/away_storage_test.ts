import assert from "node:assert/strict";
import { Failure, STORAGE_AWAY } from "../../src/base/failure.ts";
import { GcServer } from "../support/gc_server.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, push, pushOf, uploadCache } from "../support/uploading.ts";

const SILENT = new Failure("unavailable", "Cannot reach the bucket", { part: "storage" });

/** The cause in each line about a request, by its message. */
function causesOf({ log }: TestCache, answer: Response): Readonly<Record<string, string>> {
  const id = answer.headers.get("x-request-id");
  const own = log.filter((line) => line["request_id"] === id && line["error"] !== undefined);
  return Object.fromEntries(own.map(({ msg, part, error }) => [msg, `${part}: ${error}`]));
}

Deno.test("away storage: the line of a NAR that it hides names part and cause", async () => {
  await using cache = await uploadCache();
  const pushed = await pushOf(makeStoreObject({ name: "pushed" }));
  await push(cache, pushed);
  cache.nars.open = () => Promise.reject(SILENT);
  for (const method of ["GET", "HEAD"]) {
    const answer = await cache.request(method, pushed.narPath.replace("/upload", ""));
    await answer.bytes();
    assert.equal(answer.status, 404);
    assert.equal(causesOf(cache, answer)["request"], "storage: Cannot reach the bucket");
  }
});

Deno.test("away storage: both lines of a refused upload name part and cause", async () => {
  await using cache = await uploadCache();
  const pushed = await pushOf(makeStoreObject({ name: "pushed" }));
  cache.nars.put = () => Promise.reject(SILENT);
  const answer = await cache.put(pushed.narPath, new Uint8Array(pushed.file.bytes), AS_WRITER);
  await answer.bytes();
  assert.equal(answer.status, 503);
  const cause = "storage: Cannot reach the bucket";
  const { "upload refused": refused, request } = causesOf(cache, answer);
  assert.deepEqual([refused, request], [cause, cause]);
});

Deno.test("away storage: a run that fails before its first line names it", async () => {
  await using server = new GcServer(() => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(SILENT) }),
  }));
  const answer = await fetch(`${server.url}/gc`, { method: "POST" });
  assert.deepEqual([answer.status, await answer.text()], [503, `${STORAGE_AWAY}\n`]);
});
