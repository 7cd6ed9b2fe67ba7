import assert from "node:assert/strict";
import { tokensOf } from "../../../src/app/tokens.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { runLarder } from "../../support/run_larder.ts";

for (
  const [role, option] of [
    ["read", "--cache-get-token-file"],
    ["write", "--cache-put-token-file"],
    ["admin", "--cache-admin-token-file"],
  ] as const
) {
  Deno.test(`larder token: a new one of the role ${role} works as a line of its file`, async () => {
    const words = ["token", "create", "alice@laptop.lan", "--role", role];
    const [one, other] = [await runLarder(words), await runLarder(words)];
    assert.deepEqual([one.status, other.status], [0, 0]);
    assert.ok(one.err.includes(`the file of ${option}`), one.err);
    assert.match(one.out, /^alice@laptop\.lan:larder-[\w-]{43}\n$/);
    assert.notEqual(one.out, other.out);

    const files = { "/t": one.out + other.out };
    const { settings } = resolveSettings(inputsOf({ args: [option, "/t"], files }));
    assert.deepEqual(
      tokensOf(settings).map((token) => [token.name, token.role, token.secret.length]),
      [["alice@laptop.lan", role, 50], ["alice@laptop.lan", role, 50]],
    );
  });
}

Deno.test("larder token: a missing or unusable word is named, and makes no token", async () => {
  const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /"": expected create NAME/],
    [["drop", "alice", "--role=read"], /"drop": expected create NAME/],
    [["create", "--role=read"], /"": expected a name/],
    [["create", "a b", "--role=read"], /"a b": expected a name/],
    [["create", "alice", "bob", "--role=read"], /"bob": unexpected argument/],
    [["create", "alice"], /--role: got nothing, expected read\|write\|admin/],
    [["create", "alice", "--role=root"], /--role: got "root", expected one of read, write, admin/],
  ];
  for (const [words, said] of mistakes) {
    const { status, out, err } = await runLarder(["token", ...words]);
    assert.deepEqual([status, out], [2, ""], words.join(" "));
    assert.match(err, said);
  }
});

Deno.test("larder config: --permissions prints the permissions with these tokens", async () => {
  const lineOf = async (asked: RegExp, ...words: readonly string[]) => {
    const { status, out, err } = await runLarder(["config", "--permissions", ...words]);
    assert.deepEqual([status, err], [0, ""]);
    assert.ok(!out.includes("sesame"));
    return out.split("\n").find((line) => asked.test(line))?.split(/ {2,}/).slice(2).join(": ");
  };
  const pin = /^POST +\/pin\//;
  assert.equal(await lineOf(pin), "admin: anybody");
  assert.equal(await lineOf(pin, "--cache-get-token=sesame"), "admin: a token of the role read");
  assert.equal(await lineOf(pin, "--cache-admin-token=sesame"), "admin: a token of the role admin");
  assert.equal(await lineOf(/^POST +\/gc/), "admin: anybody on this machine");
  assert.equal(await lineOf(/healthz/, "--cache-get-token=sesame"), "none: anybody");
});
