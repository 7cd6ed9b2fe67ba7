import assert from "node:assert/strict";
import { MemoryAllowance } from "../../../src/base/memory_allowance.ts";
import { takeMemory, UploadRefused } from "../../../src/cache/upload/upload_body.ts";
import { PlayedTime } from "../../support/played_time.ts";

Deno.test("uploads: one waits five seconds for the memory of others, and is then refused", async () => {
  using time = new PlayedTime();
  const allowance = new MemoryAllowance(100);
  const [first, second, third] = [allowance.share(), allowance.share(), allowance.share()];
  await takeMemory(first, 80);
  const served = takeMemory(second, 50);
  const refused = takeMemory(third, 90);
  let isOver = false;
  refused.catch(() => isOver = true);

  await time.advance(4_000);
  first[Symbol.dispose]();
  await served;
  await time.advance(999);
  assert.equal(isOver, false, "the memory may still come");
  await time.advance(1);
  await assert.rejects(refused, (error) => (
    error instanceof UploadRefused && error.fault === "overloaded" &&
    error.message === "expected fewer uploads at a time"
  ));
});
