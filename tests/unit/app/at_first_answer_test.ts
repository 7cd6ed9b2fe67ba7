import assert from "node:assert/strict";
import { atFirstAnswer } from "../../../src/app/serve.ts";
import type { RequestPipeline } from "../../../src/http/pipeline/request_pipeline.ts";

type Handle = RequestPipeline["handle"];

Deno.test("workers: they start once the first answer is sent, and only then", async () => {
  const events: string[] = [];
  const handle = (async () => {
    events.push("request");
    await Promise.resolve();
    events.push("answer");
    return undefined;
  }) as unknown as Handle;
  const refuse = (() => undefined) as unknown as RequestPipeline["refuse"];
  const pipeline = atFirstAnswer({ handle, refuse }, () => void events.push("started"));
  const call = pipeline.handle as unknown as (
    request: unknown,
    delivery: { readonly ended: Promise<string> },
  ) => Promise<void>;
  const [long, short] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const both = ["request", "answer"];

  await call({}, { ended: long.promise });
  await call({}, { ended: short.promise });
  events.push("sent");
  short.resolve("sent");
  await short.promise;
  long.resolve("sent");
  await long.promise;
  await call({}, { ended: Promise.resolve("sent") });

  assert.deepEqual(events, [...both, ...both, "sent", "started", ...both]);
});
