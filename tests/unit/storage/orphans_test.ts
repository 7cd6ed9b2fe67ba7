import assert from "node:assert/strict";
import { removeOrphans } from "../../../src/storage/local/orphans.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const HOUR_MS = 3_600_000;

Deno.test("orphans: an old partial file goes, a young one and any other file stay", async () => {
  using folder = tempFolder();
  for (const name of ["old.part", "young.part", "old.nar"]) {
    Deno.writeTextFileSync(`${folder.path}/${name}`, "");
  }
  const now = Date.now();
  for (const name of ["old.part", "old.nar"]) {
    const then = new Date(now - 2 * HOUR_MS);
    Deno.utimeSync(`${folder.path}/${name}`, then, then);
  }
  const { log, lines } = recordingLogger();
  await removeOrphans(folder.path, now, log);
  const left = [...Deno.readDirSync(folder.path)].map(({ name }) => name).sort();
  assert.deepEqual(left, ["old.nar", "young.part"]);
  assert.deepEqual(lines().map(({ msg }) => msg), ["orphan removed"]);
});

Deno.test("orphans: a folder that cannot be listed is a warning and no failure", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/file`;
  Deno.writeTextFileSync(path, "");
  const { log, lines } = recordingLogger();
  await removeOrphans(path, Date.now(), log);
  const [line] = lines();
  assert.deepEqual([line?.level, line?.msg, line?.path], ["warn", "orphans not looked for", path]);
  assert.match(String(line?.error), /^Not a directory/);
});

function recordingLogger() {
  const texts: string[] = [];
  const log = createLogger("debug", { write: (text) => void texts.push(text) });
  return { log, lines: () => texts.map((text) => JSON.parse(text)) };
}
