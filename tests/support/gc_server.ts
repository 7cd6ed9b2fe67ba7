import { AccessRules } from "../../src/http/access/access_rules.ts";
import { OwnNames } from "../../src/http/access/own_names.ts";
import { Router } from "../../src/http/routes/router.ts";
import { gcRoute, type GcRouteDeps } from "../../src/http/routes/gc.ts";
import { RequestObserver } from "../../src/http/pipeline/request_observer.ts";
import { createRequestPipeline } from "../../src/http/pipeline/request_pipeline.ts";
import type { GcDone } from "../../src/space/gc_event.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { TestListener } from "./test_listener.ts";

/** How a run ended that freed all it was to free, with nothing in its way. */
export const GC_DONE: GcDone = {
  event: "done",
  dryRun: false,
  targetBytes: 8 * 2 ** 30,
  limitBytes: 10 * 2 ** 30,
  limitSource: "set",
  freedBytes: 1.5 * 2 ** 30,
  evictedEntries: 120,
  evictedFiles: 118,
  usedBytes: 7.9 * 2 ** 30,
  reservedBytes: 0,
  pinnedBytes: 0,
  busyBytes: 0,
  reached: true,
};

/** The route over an engine that the test plays, on a port of 127.0.0.1. */
export class GcServer extends TestListener {
  constructor(gc: GcRouteDeps["gc"]) {
    const log = createLogger("error", { write() {} });
    const observer = new RequestObserver({ metrics: undefined, log, scheme: "http" });
    const routes = [gcRoute({ gc })];
    const access = new AccessRules(
      { ownNames: new OwnNames([]), usesTls: false, tokens: [] },
      routes,
    );
    super(
      createRequestPipeline({ router: new Router(routes), access, observer, uploadHint: "", log }),
    );
  }
}
