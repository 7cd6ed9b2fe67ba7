import assert from "node:assert/strict";
import {
  type Alteration,
  never,
  OBJECT,
  reset,
  rewritten,
  sceneTest,
  status,
  text,
} from "./scene.ts";

const PATH = `/${OBJECT.storePathHash}.narinfo`;
const IDLE_MS = 30_000;

/** The behaviours of an upstream when larder requests a narinfo. */
const BEHAVIOURS: Readonly<Record<string, Alteration | undefined>> = {
  "200": undefined,
  "404": status(404),
  "500": status(500),
  "timeout": never,
  "reset": reset,
  "garbage": text("<html>please log in</html>"),
  "bad signature": rewritten((lines) =>
    lines.replace(/^(Sig: [^:]+:).*$/m, `$1${"A".repeat(86)}==`)
  ),
};

for (const [first, narinfo] of Object.entries(BEHAVIOURS)) {
  for (const [second, otherNarinfo] of Object.entries(BEHAVIOURS)) {
    const isPresent = first === "200" || second === "200";
    const isRemembered = first === "404" && second === "404";
    const outcome = isPresent ? "200" : isRemembered ? "404, remembered" : "404, not remembered";
    const upstreams = [{ narinfo }, { narinfo: otherNarinfo }]
      .map(({ narinfo }) => narinfo === undefined ? {} : { narinfo });

    sceneTest(
      `matrix: ${first} and ${second} are ${outcome}, in time`,
      { upstreams },
      async (scene) => {
        const answer = await scene.get(PATH);
        const expected = [isPresent ? 200 : 404, "MISS"];
        assert.deepEqual([answer.status, answer.headers.get("x-cache")], expected);
        const isSilent = first === "timeout" || second === "timeout";
        // A better one is waited for when another has the path, and any one while none has.
        const limitMs = !isSilent ? 5_000 : isPresent ? 300 : IDLE_MS;
        assert.ok(answer.headMs <= limitMs, `${answer.headMs} ms`);

        const again = await scene.get(PATH);
        assert.equal(again.status, answer.status);
        const source = isPresent || isRemembered ? "HIT" : "MISS";
        assert.equal(again.headers.get("x-cache"), source);
        if (isPresent) return;

        // A failure hides nothing: as soon as an upstream has the path, larder serves it.
        for (const at of upstreams.keys()) scene.behave(at);
        assert.equal((await scene.get(PATH)).status, isRemembered ? 404 : 200);
      },
    );
  }
}
