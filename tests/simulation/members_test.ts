import assert from "node:assert/strict";
import { newMemberId } from "../../src/base/member_id.ts";
import { clock } from "../../src/runtime/current.ts";
import { sceneTest } from "./scene.ts";
import { TEMP } from "./world_member.ts";

/** Longer than the silence of a living member. */
const SILENT_MS = 60_000;
/** A running larder looks for members that are dead. */
const LOOK_EVERY_MS = 10_000;

sceneTest(
  "members: a running larder frees the reservation of a silent member within 10 seconds",
  { upstreams: [] },
  async (scene) => {
    const silent = newMemberId("elsewhere", 1);
    scene.files.mkdirSync(`${TEMP}/${silent}`);
    scene.database.prepare("INSERT INTO member VALUES (?, ?, 1000, NULL)")
      .run(silent, clock.wallMs() - SILENT_MS);
    const reserved = () =>
      scene.database.prepare("SELECT reserved_bytes FROM member").all()
        .map((row) => row["reserved_bytes"]);
    assert.deepEqual(reserved().sort(), [0, 1_000]);

    await scene.pause(LOOK_EVERY_MS);

    assert.deepEqual(scene.logged("dead member removed").map(({ member }) => member), [silent]);
    assert.deepEqual(reserved(), [0]);
    assert.equal([...scene.files.readDirSync(TEMP)].length, 1);
  },
);
