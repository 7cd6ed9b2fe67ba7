import assert from "node:assert/strict";
import { ConfigError } from "../../../src/config/config_error.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";

/** Files that answer later; a path without text fails as a mount does that is gone. */
function readLater(args: readonly string[], texts: Readonly<Record<string, string>>) {
  const asked: string[] = [];
  const inputs = {
    ...inputsOf({ args }),
    fileExists: (path: string) => Promise.resolve(path in texts),
    async readTextFile(path: string) {
      asked.push(path);
      await Promise.resolve();
      const text = texts[path];
      if (text === undefined) throw new Error("the file system did not answer within 5 seconds");
      return text;
    },
  };
  return { asked, settings: readSettings(inputs) };
}

Deno.test("named files: the configuration and the files that it names are read once each", async () => {
  const { asked, settings } = readLater(["--config=/c.yaml"], {
    "/c.yaml": "cache:\n  admin-token-file: /admin\n  get-token-file: /get\n",
    "/admin": "a-token-of-the-admin\n",
    "/get": "a-token-of-a-reader\n",
  });
  const { "cache.admin-token": admin, "cache.get-token": get } = (await settings).settings;
  assert.deepEqual([admin?.[0]?.secret, get?.[0]?.secret], [
    "a-token-of-the-admin",
    "a-token-of-a-reader",
  ]);
  assert.deepEqual(asked.toSorted(), ["/admin", "/c.yaml", "/get"]);
});

Deno.test("named files: each that does not answer is a problem with its option and path", async () => {
  const words = [
    "--config=/c.toml",
    "--cache-admin-token-file=/admin",
    "--cache-put-token-file=/w",
  ];
  await assert.rejects(readLater(words, { "/w": "a-token-of-a-writer\n" }).settings, (error) => {
    assert.ok(error instanceof ConfigError);
    const state = "expected a file that can be read (the file system did not answer within";
    assert.deepEqual(error.problems, [
      `--config: got "/c.toml", ${state} 5 seconds)`,
      `--cache-admin-token-file: got "/admin", ${state} 5 seconds)`,
    ]);
    return true;
  });
});
