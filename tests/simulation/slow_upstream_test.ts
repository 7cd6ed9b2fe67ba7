import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { isOfSlowness } from "../support/slow_machine.ts";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { after, type Alteration, inOrder, never, type Scene, sceneTest, text } from "./scene.ts";

const objects = Array.from({ length: 5 }, (_, seed) => makeStoreObject({ name: "slow", seed }));
const [object] = objects as [typeof objects[0] & object];
const IDLE_MS = 30_000;
/** Ten times the header timeout, and just below the idle timeout. */
const LATE_MS = IDLE_MS - 1;
const late = after(LATE_MS);
/** Logs that are there, beside whatever else the upstream has. */
const built: Alteration = (answer, request) => (
  request.url.pathname.startsWith("/log/") ? text("built\n")(answer, request) : answer
);
const narinfoPath = (index: number) => `/${objects[index]?.storePathHash}.narinfo`;
const logPath = (index: number) => `/log/${String(index).padStart(32, "0")}-slow.drv`;

const PATHS = { narinfo: narinfoPath(0), log: logPath(0) };

for (const [name, path] of Object.entries(PATHS)) {
  for (const isAlone of [true, false]) {
    const where = isAlone ? "the only upstream" : "one beside another without it";
    const slow = { narinfo: late, document: inOrder(built, late) };
    sceneTest(
      `slow: a ${name} of ${where} is waited for beyond the header timeout`,
      { objects, upstreams: isAlone ? [slow] : [{ objects: [] }, slow] },
      async (scene) => {
        const { status, headMs } = await scene.get(path);
        assert.deepEqual([status, headMs], [200, LATE_MS]);
        assert.deepEqual(warnings(scene), []);
      },
    );
  }
}

/** A limit that leaves no room has the NAR passed through without being kept. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const method of ["GET", "HEAD"] as const) {
    sceneTest(
      `slow: ${way}, ${method} of a late NAR of the only upstream is 200`,
      { objects, upstreams: [{ nar: late }], limitBytes },
      async (scene) => {
        const { status, isWhole, headMs } = await scene.request(
          method,
          await scene.narPath(object),
        );
        assert.deepEqual([status, isWhole, headMs], [200, true, LATE_MS]);
        assert.deepEqual(scene.counts(/^\/nar\//), [1]);
        assert.deepEqual(warnings(scene).filter(({ msg }) => /upstream|broke/.test(msg)), []);
      },
    );
  }
}

const KINDS = ["narinfo", "nar", "document"] as const;

for (const silent of KINDS) {
  sceneTest(
    `slow: three requests of kind ${silent} without an answer stop no other`,
    { objects, upstreams: [{ document: built }] },
    async (scene) => {
      const narPath = await scene.narPath(object);
      const narPaths: string[] = [];
      if (silent === "nar") {
        for (const one of objects.slice(1, 4)) narPaths.push(await scene.narPath(one));
      }
      const paths = {
        narinfo: [1, 2, 3].map(narinfoPath),
        nar: narPaths,
        document: [1, 2, 3].map(logPath),
      };
      // Its probes get no answer, either.
      const mute: Alteration = (answer, request) => {
        const isMute = silent === "document" || request.url.pathname === "/nix-cache-info";
        return isMute ? never(answer, request) : built(answer, request);
      };
      scene.behave(0, { document: mute, ...silent !== "document" && { [silent]: never } });
      const seen = await Promise.all(paths[silent].map((path) => scene.get(path)));
      for (const { status, endMs } of seen) assert.deepEqual([status, endMs], [404, IDLE_MS]);
      const down = scene.logged("upstream is down").map(({ requests }) => requests);
      assert.deepEqual(down, [silent]);

      if (silent !== "document") assert.equal((await scene.get(logPath(0))).status, 200);
      if (silent !== "narinfo") assert.equal((await scene.get(narinfoPath(4))).status, 200);
      if (silent !== "nar") assert.ok((await scene.get(narPath)).isWhole);
      const { bytes } = await scene.get("/stats");
      const { upstreams } = await readStats(new Response(new Uint8Array(bytes)));
      const { is_up: isUp, sends_nars: sendsNars } = upstreams[0] ?? {};
      assert.deepEqual([isUp, sendsNars], [silent !== "narinfo", silent !== "nar"]);
    },
  );
}

sceneTest(
  "slow: after an idle timeout the log's hint names the options",
  { objects, upstreams: [{}] },
  async (scene) => {
    const path = await scene.narPath(object);
    scene.behave(0, { narinfo: never, nar: never });
    assert.equal((await scene.get(path)).status, 404);
    assert.equal((await scene.get(narinfoPath(1))).status, 404);
    for (const msg of ["upstream failed", "nar not fetched"]) {
      const hint = String(warnings(scene).find((line) => line.msg === msg)?.["hint"]);
      assert.match(hint, /--cache-upstream-body-idle-timeout/);
      assert.match(hint, /--cache-upstream-response-header-timeout/);
    }
  },
);

/** Four pieces, with a silence of just below the limit in front of each. */
const inSilences: Alteration = ({ body, ...answer }) => ({
  ...answer,
  body: ReadableStream.from(slowPieces(body as Uint8Array)),
});

async function* slowPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const quarter = Math.ceil(bytes.length / 4);
  for (let at = 0; at < bytes.length; at += quarter) {
    await clock.pause(LATE_MS);
    yield bytes.subarray(at, at + quarter);
  }
}

sceneTest(
  "timeout: a NAR body may take long as long as bytes keep coming",
  { objects, upstreams: [{ nar: inSilences }] },
  async (scene) => {
    const { isWhole, bytes, endMs } = await scene.nar(object);
    assert.deepEqual([isWhole, bytes.length, endMs], [true, object.nar.length, 4 * LATE_MS]);
  },
);

function warnings({ log }: Scene) {
  return log.filter((line) => line.level === "warn" && !isOfSlowness(line));
}
