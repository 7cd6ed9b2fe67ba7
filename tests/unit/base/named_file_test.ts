import assert from "node:assert/strict";
import { namedFileExists, readNamedText } from "../../../src/base/named_file.ts";
import { files, playRuntime } from "../../../src/runtime/current.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { programsMissing, testUnless } from "../../support/program.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const never = () => new Promise<never>(() => {});

Deno.test("named file: a path that never answers ends the wait after five seconds", async () => {
  using time = new PlayedTime();
  using _played = playRuntime({ files: { ...files, stat: never } });
  const message = "the file system did not answer within 5 seconds";
  const read = assert.rejects(readNamedText("/gone/token"), { message });
  const there = namedFileExists("/gone/token");
  await time.advance(5_000);
  await read;
  assert.equal(await there, true);
});

testUnless(
  programsMissing("mkfifo"),
  "named file: a pipe that nobody writes ends the wait after a minute",
  async () => {
    using folder = tempFolder();
    const path = pipeIn(folder.path);
    const facts = Deno.statSync(path);
    using time = new PlayedTime();
    using _played = playRuntime({ files: { ...files, stat: () => Promise.resolve(facts) } });
    const message = "nobody wrote it whole within 60 seconds";
    const read = assert.rejects(readNamedText(path), { message });
    await time.advance(60_000);
    await read;
    // The thread that waits in it ends.
    Deno.openSync(path, { read: true, write: true }).close();
  },
);

testUnless(
  programsMissing("mkfifo"),
  "named file: a pipe that somebody writes is read",
  async () => {
    using folder = tempFolder();
    const path = pipeIn(folder.path);
    const writer = new Deno.Command("sh", { args: ["-c", `echo secret > ${path}`] }).output();
    assert.equal(await readNamedText(path), "secret\n");
    assert.ok((await writer).success);
  },
);

Deno.test("named file: a device without an end is given up", async () => {
  await assert.rejects(readNamedText("/dev/zero"), { message: "it is larger than 64.0 MiB" });
});

function pipeIn(folder: string): string {
  const path = `${folder}/pipe`;
  assert.ok(new Deno.Command("mkfifo", { args: [path] }).outputSync().success);
  return path;
}
