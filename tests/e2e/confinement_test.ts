import assert from "node:assert/strict";
import { PERMISSIONS } from "../support/larder_process.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free_port.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** What somebody would try who made larder's main thread run code of theirs. */
const ATTEMPTS = [
  'Deno.readTextFileSync("/etc/hostname")',
  'Deno.readTextFileSync("/proc/self/environ")',
  'Deno.writeTextFileSync("/tmp/larder-was-here", "")',
  'new Deno.Command("true").outputSync()',
  'Deno.dlopen("/lib/libc.so.6", {})',
  'Deno.env.get("HOME")',
  "Deno.listen({ port: 0 })",
];

Deno.test("confinement: the main thread of a running larder can do nothing any more", async () => {
  using folder = tempFolder();
  const [inspector, port] = [freePort(), freePort()];
  await using larder = new Deno.Command(Deno.execPath(), {
    args: [
      ...[
        "run",
        "--cached-only",
        `--inspect=127.0.0.1:${inspector}`,
        ...PERMISSIONS,
        MAIN,
        "serve",
      ],
      ...[`--server-addr=127.0.0.1:${port}`, `--cache-storage-local=${folder.path}/storage`],
      "--cache-upstream-url=http://127.0.0.1:9",
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await eventually("larder answers", () => answers(port));

    for (const attempt of ATTEMPTS) {
      assert.match(await outcomeOf(inspector, attempt), /NotCapable/, attempt);
    }
  } finally {
    larder.kill("SIGKILL");
  }
});

async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** What the expression gives in the main thread, through Deno's debugger. */
async function outcomeOf(inspector: number, expression: string): Promise<string> {
  const [target] = await (await fetch(`http://127.0.0.1:${inspector}/json`)).json();
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.onopen = () =>
    socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression } }));
  socket.onmessage = ({ data }) => {
    if (JSON.parse(data).id === 1) resolve(data);
  };
  socket.onerror = () => reject(new Error("Cannot reach the debugger"));
  const closed = new Promise((resolve) => socket.onclose = resolve);
  try {
    return await promise;
  } finally {
    socket.close();
    await closed;
  }
}
