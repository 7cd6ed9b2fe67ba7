import assert from "node:assert/strict";
import { AccessRules } from "../../../../src/http/access/access_rules.ts";
import { OwnNames } from "../../../../src/http/access/own_names.ts";
import type { DeliveryEnd } from "../../../../src/http/message/message.ts";
import { RequestObserver } from "../../../../src/http/pipeline/request_observer.ts";
import { createRequestPipeline } from "../../../../src/http/pipeline/request_pipeline.ts";
import { HEALTHZ_ROUTE } from "../../../../src/http/routes/fixed_answers.ts";
import { Router } from "../../../../src/http/routes/router.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

Deno.test("workers: they start once the first answer is sent, and only then", async () => {
  const events: string[] = [];
  const log = createLogger("error", { write() {} });
  const routes = [HEALTHZ_ROUTE];
  const pipeline = createRequestPipeline({
    router: new Router(routes),
    access: new AccessRules({ ownNames: new OwnNames([]), usesTls: false, tokens: [] }, routes),
    observer: new RequestObserver({ metrics: undefined, log, scheme: "http" }),
    ...{ uploadHint: "", log },
  });
  pipeline.onFirstAnswer(() => void events.push("started"));
  const ask = async (ended: Promise<DeliveryEnd>) => {
    await pipeline.handle(new Request("http://localhost/healthz"), { ended, sentBytes: 0 });
    events.push("answer");
  };
  const [long, short] = [
    Promise.withResolvers<DeliveryEnd>(),
    Promise.withResolvers<DeliveryEnd>(),
  ];

  await ask(long.promise);
  await ask(short.promise);
  events.push("sent");
  short.resolve("sent");
  await short.promise;
  long.resolve("sent");
  await long.promise;
  await ask(Promise.resolve("sent"));

  assert.deepEqual(events, ["answer", "answer", "sent", "started", "answer"]);
});
