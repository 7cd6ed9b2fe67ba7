import assert from "node:assert/strict";
import { terminalMissing, testUnless } from "../support/program.ts";
import { tempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

/** The exit code of the wrapper where it finds no Deno to run. */
const NOT_FOUND = 127;

const CTRL_C = "\x03";

const START_REGEXP = /"msg":"server started".*"pid":(\d+)/;

wrapperTest(
  "wrapper: SIGTERM stops the server itself, which leaves nothing behind",
  "",
  async () => {
    await using served = await serve((words) => new Deno.Command(`${ROOT}/scripts/deno`, words));
    served.child.kill("SIGTERM");
    await served.hasStopped("SIGTERM");
  },
);

wrapperTest("wrapper: one Ctrl-C in a terminal stops it with 0", terminalMissing(), async () => {
  const inTerminal = ({ args = [], ...others }: Deno.CommandOptions) => {
    const words = [`${ROOT}/scripts/deno`, ...args].map((word) => `'${word}'`).join(" ");
    const script = ["--quiet", "--return", "--command", `exec ${words}`, "/dev/null"];
    return new Deno.Command("script", { args: script, ...others });
  };
  // Where `deno task` or npm forward the signal, it gets two.
  await using served = await serve(inTerminal);
  await served.type(CTRL_C);
  await served.hasStopped("SIGINT");
});

function wrapperTest(name: string, lack: string, fn: () => Promise<void>): void {
  testUnless(denoMissing() || lack, name, fn);
}

function denoMissing(): string {
  const { code } = new Deno.Command(`${ROOT}/scripts/deno`, { args: ["--version"] }).outputSync();
  return code === NOT_FOUND ? "no fitting Deno on PATH, and no npx" : "";
}

interface Served extends AsyncDisposable {
  readonly child: Deno.ChildProcess;
  /** Of the server itself. */
  readonly pid: number;
  type(text: string): Promise<void>;
  /** Fails unless it ends by itself, with 0 and all its files closed. */
  hasStopped(signal: Deno.Signal): Promise<void>;
}

/** Resolves when `scripts/deno task serve`, run as `command` says, has started the server. */
async function serve(command: (words: Deno.CommandOptions) => Deno.Command): Promise<Served> {
  await using resources = new AsyncDisposableStack();
  const storage = resources.use(tempFolder()).path;
  const child = command({
    // In a terminal it would write for people.
    args: [
      ...["task", "serve", "--log-format=json", "--server-addr=127.0.0.1:0"],
      `--cache-storage-local=${storage}`,
    ],
    cwd: ROOT,
    env: { XDG_CONFIG_HOME: storage },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const input = child.stdin.getWriter();
  let said = "";
  while (!START_REGEXP.test(said)) {
    const { value, done } = await output.read();
    if (done) throw new Error(`Cannot see its start: ${said}`);
    said += value;
  }
  const pid = Number(START_REGEXP.exec(said)?.[1]);
  resources.defer(async () => {
    if (isRunning(pid)) Deno.kill(pid, "SIGKILL");
    await output.cancel();
    await input.close().catch(() => undefined);
    await child.status;
  });
  const owned = resources.move();
  return {
    ...{ child, pid },
    type: (text) => input.write(new TextEncoder().encode(text)),
    async hasStopped(signal) {
      const { code } = await child.status;
      assert.ok(!isRunning(pid), "the server outlived its parent");
      for (let more = await output.read(); !more.done; more = await output.read()) {
        said += more.value;
      }
      const [line, ...others] = said.match(/\{.*"msg":"server shutdown".*\}/g) ?? [];
      assert.deepEqual([JSON.parse(line ?? "{}").signal, others, code], [signal, [], 0]);
      const names = [...Deno.readDirSync(storage)].map(({ name }) => name);
      assert.ok(names.includes("db.sqlite") && !names.includes("db.sqlite-wal"), String(names));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function isRunning(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}
