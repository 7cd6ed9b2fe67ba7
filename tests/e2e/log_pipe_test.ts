import assert from "node:assert/strict";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** More log text than a pipe (64 KiB) and the buffers of its reader hold together. */
const REQUESTS = 4_000;

Deno.test("log: an unread pipe does not stop the server", async () => {
  using folder = tempFolder();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--cached-only",
      "--allow-all",
      MAIN,
      "serve",
      `--cache-storage-local=${folder.path}`,
      "--server-addr=127.0.0.1:0",
      "--log-level=debug",
      "--cache-upstream-url=http://127.0.0.1:1",
    ],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  const { url } = JSON.parse(first.split("\n")[0] ?? "");

  for (let count = 0; count < REQUESTS; count += 50) {
    await Promise.all(Array.from({ length: 50 }, async (_, index) => {
      const hash = String(count + index).padStart(32, "0");
      const answer = await fetch(`${url}/${hash}.narinfo`);
      await answer.body?.cancel();
      assert.equal(answer.status, 404);
    }));
  }
  assert.equal(await (await fetch(`${url}/healthz`)).text(), "OK\n");

  // It stops, too, though its last lines cannot be written.
  child.kill("SIGTERM");
  assert.equal((await child.status).code, 0);
  await reader.cancel();
});
