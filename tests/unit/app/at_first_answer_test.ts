import assert from "node:assert/strict";
import { atFirstAnswer } from "../../../src/app/at_first_answer.ts";
import type { RequestPipeline } from "../../../src/http/pipeline/request_pipeline.ts";

type Handle = RequestPipeline["handle"];

Deno.test("workers: they start behind the first answer, whatever it is, and once", async () => {
  const events: string[] = [];
  const handle = (async () => {
    events.push("asked");
    await Promise.resolve();
    events.push("answered");
    return undefined;
  }) as unknown as Handle;
  const refuse = (() => undefined) as unknown as RequestPipeline["refuse"];
  const pipeline = atFirstAnswer({ handle, refuse }, () => void events.push("started"));
  const call = pipeline.handle as unknown as () => Promise<void>;
  await call();
  await call();
  assert.deepEqual(events, ["asked", "answered", "started", "asked", "answered"]);
});
