import assert from "node:assert/strict";
import { signingKey } from "../../../src/app/signing_key.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { files, playRuntime } from "../../../src/runtime/current.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { programsMissing, testUnless } from "../../support/program.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("signing key: the one that is made is private, and alone in its folder", async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  const key = await signingKey(place);
  assert.equal(Deno.readTextFileSync(place.path), `${key.text}\n`);
  assert.equal((Deno.statSync(place.path).mode ?? 0) & 0o777, 0o600);
  assert.deepEqual(namesIn(folder.path), ["secret-key"]);
  assert.equal((await signingKey(place)).text, key.text);
});

Deno.test("signing key: a write that breaks off leaves no key", async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  {
    using _ = replaceWrite((write, path, _text, options) => {
      write(path, "", options);
      throw new Error("ended");
    });
    await assert.rejects(signingKey(place), /Cannot make secret key file .*secret-key: ended/);
  }
  assert.deepEqual(namesIn(folder.path), []);
  await signingKey(place);
});

Deno.test("signing key: one that another server makes meanwhile is taken", async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  const other = generateSecretKey("other");
  using _ = replaceWrite((write, path, text, options) => {
    write(place.path, `${other.text}\n`);
    write(path, text, options);
  });
  assert.equal((await signingKey(place)).text, other.text);
  assert.deepEqual(namesIn(folder.path), ["secret-key"]);
});

Deno.test("signing key: a missing one that may not be made is a failure with advice", async () => {
  using folder = tempFolder();
  const place = { ...placeIn(folder.path), mayMake: false };
  await assert.rejects(signingKey(place), {
    name: "Failure",
    message: /^Cannot use secret key file .*generate-secret --key-name larder\.test.*leave out --/,
  });
  assert.deepEqual(namesIn(folder.path), []);
  const { text } = await signingKey(placeIn(folder.path));
  assert.equal((await signingKey(place)).text, text);
});

Deno.test("signing key: a link to nowhere is a failure that names it", async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  Deno.symlinkSync("nowhere", place.path);
  await assert.rejects(signingKey(place), { name: "Failure", message: /secret-key: / });
});

const FIFO_NAMED = "signing key: a path that is a FIFO, or a device, is a failure that says so";
testUnless(programsMissing("mkfifo"), FIFO_NAMED, async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  assert.ok(new Deno.Command("mkfifo", { args: [place.path] }).outputSync().success);
  for (const path of [place.path, "/dev/zero"]) {
    await assert.rejects(signingKey({ ...place, path }), {
      name: "Failure",
      message: `Cannot use secret key file ${path}: it is no regular file`,
    });
  }
});

Deno.test("signing key: a file system that hangs ends the wait with the key's path", async () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  using time = new PlayedTime();
  const hung = { ...files, stat: () => new Promise<never>(() => {}) };
  using _played = playRuntime({ files: hung });
  const read = assert.rejects(signingKey(place), {
    name: "Failure",
    message: /^Cannot use secret key file .*key: the file system did not answer within 5 seconds$/,
  });
  await time.advance(5_000);
  await read;
});

type Write = typeof Deno.writeTextFileSync;

function replaceWrite(
  instead: (write: Write, ...given: Parameters<Write>) => void,
): Disposable {
  const write = Deno.writeTextFileSync;
  Deno.writeTextFileSync = (...given) => instead(write, ...given);
  return { [Symbol.dispose]: () => void (Deno.writeTextFileSync = write) };
}

function placeIn(folder: string) {
  return { path: `${folder}/secret-key`, hostname: "larder.test", mayMake: true };
}

function namesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name);
}
