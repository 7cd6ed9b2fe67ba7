import assert from "node:assert/strict";
import {
  generateSecretKey,
  parsePublicKey,
  parseSecretKey,
  signatureOf,
} from "../../../src/nix/signature.ts";
import { FIXTURE_KEY } from "../../support/narinfo_fixtures.ts";

const BAD_REQUEST = { name: "Failure", kind: "bad-request" };
const base64 = (length: number, fill = 7) => new Uint8Array(length).fill(fill).toBase64();

Deno.test("secret key: its public key verifies its signatures, and nothing else", () => {
  const key = generateSecretKey("cache-1");
  const other = generateSecretKey("cache-1");

  const signature = key.sign("1;text");

  assert.equal(signature.keyName, "cache-1");
  assert.equal(key.publicKey.verify("1;text", signature), true);
  assert.equal(key.publicKey.verify("1;texts", signature), false);
  assert.equal(other.publicKey.verify("1;text", signature), false);
  const read = signatureOf(signature.text);
  assert.ok(read && key.publicKey.verify("1;text", read));
});

Deno.test("secret key: its text gives the same key back, trailing newline or not", () => {
  const key = generateSecretKey("cache-1");
  for (const text of [key.text, `${key.text}\n`]) {
    const again = parseSecretKey(text);
    assert.equal(again.text, key.text);
    assert.equal(again.publicKey.text, key.publicKey.text);
    assert.deepEqual(again.sign("x"), key.sign("x"));
  }
});

Deno.test("secret key: neither printing it nor a failure to read it shows the secret", () => {
  const key = generateSecretKey("cache-1");
  const secret = key.text.slice("cache-1:".length, -4);

  assert.ok(!Deno.inspect(key, { depth: 9 }).includes(secret.slice(0, 20)));
  assert.ok(!JSON.stringify(key).includes(secret.slice(0, 20)));
  assert.throws(() => parseSecretKey(`cache-1:${secret}`), (thrown: Error) => {
    return !Deno.inspect(thrown).includes(secret.slice(0, 20));
  });
});

Deno.test("secret key: a public half of another key is refused", () => {
  const seed = Uint8Array.fromBase64(generateSecretKey("a").text.slice(2)).slice(0, 32);
  const half = Uint8Array.fromBase64(generateSecretKey("a").text.slice(2)).slice(32);
  const text = `a:${new Uint8Array([...seed, ...half]).toBase64()}`;

  assert.throws(() => parseSecretKey(text), { ...BAD_REQUEST, message: /public half/ });
});

Deno.test("secret key: a name that could not be read back is refused", () => {
  for (const name of ["", "a:b", "a b", "a\n", "\0", "x".repeat(256)]) {
    assert.throws(() => generateSecretKey(name), BAD_REQUEST);
  }
});

Deno.test("public key: the key of cache.nixos.org is read and written alike", () => {
  const key = parsePublicKey(` ${FIXTURE_KEY}\n`);

  assert.equal(key.name, "cache.nixos.org-1");
  assert.equal(key.text, FIXTURE_KEY);
});

Deno.test("public key: anything but a name and 32 bytes of a point is refused", () => {
  const bytes = FIXTURE_KEY.split(":")[1] ?? "";
  const texts = ["", ":", bytes, `:${bytes}`, `a b:${bytes}`, `a:${bytes}x`, `a::${bytes}`];
  const lengths = [0, 31, 33, 64].map((length) => `a:${base64(length)}`);
  const noPoint = `a:${base64(32, 2)}`;
  for (const text of [...texts, ...lengths, noPoint, `a:${bytes.replace("=", " ")}`]) {
    assert.throws(() => parsePublicKey(text), BAD_REQUEST, text);
  }
});

Deno.test("signature: anything but a name and 64 bytes is refused", () => {
  assert.equal(signatureOf(`a:${base64(64)}`)?.bytes.length, 64);
  const texts = [
    "",
    "a",
    ":",
    `:${base64(64)}`,
    base64(64),
    `a:${base64(64)}\n`,
    `a: ${base64(64)}`,
  ];
  for (const text of [...texts, `a:${base64(63)}`, `a:${base64(65)}`, `a:${"*".repeat(88)}`]) {
    assert.equal(signatureOf(text), undefined, text);
  }
});
