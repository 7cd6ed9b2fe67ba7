// Counts the files of `src` whose functions run for one request, on the thread that answers it. V8
// counts the calls (Profiler.takePreciseCoverage of the Chrome DevTools Protocol).
import { Session } from "node:inspector/promises";
import { parseArgs } from "node:util";
import { run } from "../src/cli/run.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { freePort } from "../tests/support/free_port.ts";
import { makeStoreObject } from "../tests/support/store_object.ts";
import { tempFolder } from "../tests/support/temp_folder.ts";
import { pushOf } from "../tests/support/uploading.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE = `Usage: paths [--list]

Prints how many files of src each request runs through. --list names them.
`;

/** Repeats of a request. A file that ran for each of them is no chore beside it. */
const TIMES = 8;
/** What larder does behind its answer, such as keeping a NAR, has ended after it. */
const SETTLE_MS = 20;
const LOOK_MS = 500;
const FIRST_LOOK = "cache/reconcile/reconciler.ts";
const TOKEN = "paths:a-token-of-this-run";
const SOURCES = new URL("../src/", import.meta.url).href;

const { list } = optionsOrExit(
  (args) => parseArgs({ args: [...args], options: { list: { type: "boolean" } } }).values,
  USAGE,
);
const objects = Array.from(
  { length: TIMES },
  (_, seed) => makeStoreObject({ name: "path", size: 60_000, seed }),
);
const pushes = await Promise.all(
  objects.map((_, seed) => pushOf(makeStoreObject({ name: "pushed", size: 60_000, seed }))),
);
using folder = tempFolder();
await using upstream = await fakeUpstream({ objects, stored: true });
const url = `http://127.0.0.1:${freePort()}`;
const ended = run([
  "serve",
  `--server-addr=${url.slice("http://".length)}`,
  `--cache-storage-local=${folder.path}`,
  `--cache-upstream-url=${upstream.url}`,
  `--cache-upstream-public-key=${upstream.publicKey}`,
  "--cache-prefetch=false",
  "--cache-allow-put-verb",
  `--cache-put-token=${TOKEN}`,
  "--log-level=error",
]);
ended.then((status) => Deno.exit(status));
while (!await fetch(`${url}/healthz`).then((answer) => answer.text(), () => false)) {
  await pause(50);
}

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

do {
  await calledFiles();
  await pause(LOOK_MS);
} while ((await calledFiles()).has(FIRST_LOOK));

const narPaths: string[] = [];
await measure("cold narinfo", async (index) => {
  const narinfo = await get(`/${objects[index]?.storePathHash}.narinfo`);
  narPaths[index] = `/${/^URL: (.+)$/m.exec(narinfo)?.[1]}`;
});
await measure("cold NAR", (index) => get(narPaths[index] ?? ""));
await measure("narinfo hit", (index) => get(`/${objects[index]?.storePathHash}.narinfo`));
await measure("small NAR hit", (index) => get(narPaths[index] ?? ""));
await measure("upload of a NAR", (index) => {
  const { narPath = "", file } = pushes[index] ?? {};
  return send("PUT", narPath, file && new Uint8Array(file.bytes));
});
await measure("upload of a narinfo", (index) => {
  const { narinfoPath = "", narinfo = "" } = pushes[index] ?? {};
  return send("PUT", narinfoPath, narinfo);
});
await measure("pin", (index) => send("POST", `/pin/${objects[index]?.storePathHash}.narinfo`));
Deno.kill(Deno.pid, "SIGTERM");

/** Prints how many files ran for each of these requests. */
async function measure(name: string, request: (index: number) => Promise<unknown>) {
  let files: ReadonlySet<string> | undefined;
  for (let index = 0; index < TIMES; index++) {
    await calledFiles();
    await request(index);
    await pause(SETTLE_MS);
    const called = await calledFiles();
    files = files?.intersection(called) ?? called;
  }
  console.log(`${name}: ${files?.size} files`);
  if (list) console.log([...files ?? []].sort().map((file) => `  ${file}`).join("\n"));
}

/** The files of `src` whose functions were called since the call before. */
async function calledFiles(): Promise<ReadonlySet<string>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const called = result.filter(({ url, functions }) =>
    url.startsWith(SOURCES) && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
  );
  return new Set(called.map(({ url }) => url.slice(SOURCES.length)));
}

function pause(ms: number) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function get(path: string): Promise<string> {
  return await send("GET", path);
}

async function send(method: string, path: string, body: BodyInit | null = null): Promise<string> {
  const answer = await fetch(`${url}${path}`, {
    method,
    body,
    headers: method === "PUT" ? { authorization: `Bearer ${TOKEN.split(":")[1]}` } : {},
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} is ${answer.status}: ${text}`);
  return text;
}
