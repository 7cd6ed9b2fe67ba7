import assert from "node:assert/strict";
import { PERMISSIONS } from "../support/larder_process.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free_port.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** Acts that an attacker's code would try in larder's main thread. */
const ATTEMPTS = [
  'Deno.readTextFileSync("/etc/hostname")',
  'Deno.readTextFileSync("/proc/self/environ")',
  'Deno.readDirSync("/").next()',
  'Deno.writeTextFileSync("/tmp/larder-was-here", "")',
  'Deno.permissions.requestSync({ name: "read", path: "/" }).state === "granted" || ' +
  'Deno.readTextFileSync("/etc/hostname")',
  'Deno.symlinkSync("/etc", STORAGE + "/etc")',
  'Deno.linkSync("/etc/hostname", STORAGE + "/etc")',
  'new Deno.Command("sh").outputSync()',
  'Deno.dlopen("/lib/libc.so.6", {})',
];

/** The same, through a Worker, which would report each file that it can read. */
const WORKER =
  'new Promise((resolve) => { const code = `try { Deno.readTextFileSync("/etc/hostname");' +
  'postMessage("read it") } catch (error) { postMessage(error.name) }`; new Worker(' +
  'URL.createObjectURL(new Blob([code], { type: "application/javascript" })), { type: "module" })' +
  ".onmessage = ({ data }) => resolve(data) })";

Deno.test("confinement: a running larder reads nothing outside its storage", async () => {
  using folder = tempFolder();
  const storage = `${folder.path}/storage`;
  const [inspector, port] = [freePort(), freePort()];
  await using larder = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", "--no-prompt", `--inspect=127.0.0.1:${inspector}`],
      ...[...PERMISSIONS, MAIN, "serve", `--server-addr=127.0.0.1:${port}`],
      ...[`--cache-storage-local=${storage}`, "--cache-upstream-url=http://127.0.0.1:9"],
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await eventually("larder answers", () => answers(port));

    for (const attempt of ATTEMPTS) {
      const expression = attempt.replace("STORAGE", JSON.stringify(storage));
      assert.match(await outcomeOf(inspector, expression), /NotCapable/, attempt);
    }
    assert.match(await outcomeOf(inspector, WORKER), /NotCapable/);
    const own = `Deno.readTextFileSync(${JSON.stringify(`${storage}/secret-key`)}).length > 9`;
    assert.match(await outcomeOf(inspector, own), /"value":true/);
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

/** The result of the expression in the main thread, through Deno's debugger. */
async function outcomeOf(inspector: number, expression: string): Promise<string> {
  const [target] = await (await fetch(`http://127.0.0.1:${inspector}/json`)).json();
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const params = { expression, awaitPromise: true };
  socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params }));
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
