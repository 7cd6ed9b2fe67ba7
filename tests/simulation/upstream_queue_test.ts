import assert from "node:assert/strict";
import { after, type Alteration, never, sceneTest, status } from "./scene.ts";

/** As long as the only upstream may take, whether a request queues or not. */
const IDLE_TIMEOUT_MS = 5_000;
/** All requests of a scene begin together: the first ones are answered when all are here. */
const ANSWERED_MS = 100;

const narinfoOf = (index: number) => `/${String(index).padStart(32, "0")}.narinfo`;
const logOf = (index: number) => `/log/${String(index).padStart(32, "0")}-thing.drv`;

for (
  const [what, { pathOf, pattern, inFlightMax }] of Object.entries({
    "narinfos": { pathOf: narinfoOf, pattern: /\.narinfo$/, inFlightMax: 200 },
    "logs": { pathOf: logOf, pattern: /^\/log/, inFlightMax: 100 },
  })
) {
  let asked = 0;
  let isOver = false;
  const slow: Alteration = (answer, request) => {
    if (!pattern.test(request.url.pathname) || isOver) return answer;
    if (asked++ >= inFlightMax) return never(answer, request);
    return after(ANSWERED_MS)(status(404)(answer, request), request);
  };

  sceneTest(
    `queue: slow ${what} are 404 in time, and only absences remembered`,
    {
      upstreams: [{ narinfo: slow, document: slow, objects: [] }],
      timeouts: { headerTimeoutMs: 1_000, idleTimeoutMs: IDLE_TIMEOUT_MS },
    },
    async (scene) => {
      const paths = Array.from({ length: inFlightMax * 3 / 2 }, (_, count) => pathOf(count));
      const misses = await Promise.all(paths.map((path) => scene.get(path)));
      const expected = paths.map((_, index) => [
        404,
        index < inFlightMax ? ANSWERED_MS : IDLE_TIMEOUT_MS,
      ]);
      assert.deepEqual(misses.map(({ status, headMs }) => [status, headMs]), expected);
      // A request that queued too long is no failure of the upstream. One line says so.
      assert.deepEqual(scene.log.filter(({ level }) => level === "warn").map(({ msg }) => msg), [
        "upstream too slow: queued requests time out",
      ]);
      isOver = true;
      const again = await Promise.all(paths.map((path) => scene.get(path)));
      const hits = again.filter(({ headers }) => headers.get("x-cache") === "HIT");
      assert.equal(hits.length, inFlightMax);
      assert.equal(scene.logged("upstream keeps up again").length, 1);
    },
  );
}
