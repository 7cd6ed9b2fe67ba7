import assert from "node:assert/strict";
import { signingKey } from "../../../src/app/signing_key.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("signing key: the one that is made is private, and alone in its folder", () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  const key = signingKey(place);
  assert.equal(Deno.readTextFileSync(place.path), `${key.text}\n`);
  assert.equal((Deno.statSync(place.path).mode ?? 0) & 0o777, 0o600);
  assert.deepEqual(namesIn(folder.path), ["secret-key"]);
  assert.equal(signingKey(place).text, key.text);
});

Deno.test("signing key: a write that breaks off leaves no key", () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  {
    using _ = replaceWrite((write, path, _text, options) => {
      write(path, "", options);
      throw new Error("ended");
    });
    assert.throws(() => signingKey(place), /Cannot make secret key file .*secret-key: ended/);
  }
  assert.deepEqual(namesIn(folder.path), []);
  signingKey(place);
});

Deno.test("signing key: one that another server makes meanwhile is taken", () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  const other = generateSecretKey("other");
  using _ = replaceWrite((write, path, text, options) => {
    write(place.path, `${other.text}\n`);
    write(path, text, options);
  });
  assert.equal(signingKey(place).text, other.text);
  assert.deepEqual(namesIn(folder.path), ["secret-key"]);
});

Deno.test("signing key: a missing one that may not be made is a failure with advice", () => {
  using folder = tempFolder();
  const place = { ...placeIn(folder.path), mayMake: false };
  assert.throws(() => signingKey(place), {
    name: "Failure",
    message: /^Cannot use secret key file .*generate-secret --key-name larder\.test.*leave out --/,
  });
  assert.deepEqual(namesIn(folder.path), []);
  const { text } = signingKey(placeIn(folder.path));
  assert.equal(signingKey(place).text, text);
});

Deno.test("signing key: a link to nowhere is a failure that names it", () => {
  using folder = tempFolder();
  const place = placeIn(folder.path);
  Deno.symlinkSync("nowhere", place.path);
  assert.throws(() => signingKey(place), { name: "Failure", message: /secret-key: / });
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
