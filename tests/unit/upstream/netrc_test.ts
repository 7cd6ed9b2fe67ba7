import assert from "node:assert/strict";
import { parseNetrc } from "../../../src/upstream/http/netrc.ts";

const HOST = "cache.example.org";

function loginIn(text: string, host = HOST): string | undefined {
  const found = parseNetrc(text).find(host);
  return found === undefined ? undefined : `${found.login}:${found.password}`;
}

Deno.test("netrc: the entry of the host, on one line or several", () => {
  assert.equal(loginIn(`machine ${HOST} login me password secret`), "me:secret");
  assert.equal(loginIn(`machine ${HOST}\n  login me\n\tpassword secret\n`), "me:secret");
});

Deno.test("netrc: another host has no login, unless there is a default", () => {
  assert.equal(loginIn("machine other login me password secret"), undefined);
  const text = "machine other login a password b\ndefault login me password secret";
  assert.equal(loginIn(text), "me:secret");
  assert.equal(loginIn(text, "other"), "a:b");
});

Deno.test("netrc: the first of two entries for a host counts", () => {
  const text = `machine ${HOST} login a password b machine ${HOST} login c password d`;
  assert.equal(loginIn(text), "a:b");
});

Deno.test("netrc: quotes, comments, accounts and macros are read past", () => {
  const text = `# machine ${HOST} login no password no
machine other login x password y
macdef init
  machine ${HOST} login no password no
  quit

machine ${HOST} login "my name" account a password "se\\"cret#1" # behind`;
  assert.equal(loginIn(text), 'my name:se"cret#1');
});

Deno.test("netrc: a password alone is a login with an empty name", () => {
  assert.equal(loginIn(`machine ${HOST} password token`), ":token");
});

Deno.test("netrc: an error names its line, and shows no password", () => {
  assert.throws(() => parseNetrc("login me"), /login before any machine \(line 1\)/);
  assert.throws(() => parseNetrc("machine a\nlogin"), /login without a value \(line 2\)/);
  const misplaced = () => parseNetrc("machine a login b password c hunter2");
  assert.throws(misplaced, (error: Error) => !error.message.includes("hunter2"));
});
