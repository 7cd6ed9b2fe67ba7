import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free_port.ts";
import { PERMISSIONS } from "../support/larder_process.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** The file of the output stands for the journal's socket: both are known by device and inode. */
function asJournal({ dev, ino }: Deno.FileInfo): string {
  return `${dev}:${ino}`;
}

/**
 * Lines that larder writes to standard output, in its first moments, with an upstream that is off.
 * `journal`: the variable JOURNAL_STREAM. `last`: words of the last lines, in any order.
 */
async function firstLines(
  journal: (out: Deno.FileInfo) => string,
  flags: readonly string[],
  last: readonly string[],
): Promise<string> {
  using folder = tempFolder();
  const out = `${folder.path}/out`;
  Deno.writeTextFileSync(out, "");
  const child = new Deno.Command("sh", {
    args: [
      ...["-c", 'exec "$@" > "$OUT"', "sh"],
      ...[Deno.execPath(), "run", "--cached-only", ...PERMISSIONS, MAIN, "serve"],
      ...[`--cache-storage-local=${folder.path}/storage`, `--server-addr=127.0.0.1:${freePort()}`],
      ...["--cache-upstream-url=http://127.0.0.1:1", "--cache-hostname=larder.test", ...flags],
    ],
    env: { OUT: out, JOURNAL_STREAM: journal(Deno.statSync(out)), XDG_CONFIG_HOME: folder.path },
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await eventually("the upstream is looked at", () => {
      const text = Deno.readTextFileSync(out);
      return last.every((words) => text.includes(words));
    });
  } finally {
    child.kill("SIGTERM");
    await child.status;
  }
  return Deno.readTextFileSync(out);
}

Deno.test("log: in the journal each line has its priority, and the rest is JSON", async () => {
  const lines = (await firstLines(asJournal, [], ["upstream does not answer"])).trimEnd().split(
    "\n",
  );

  const told = lines.map((line) => {
    const [, priority = "", json = ""] = /^(<\d>)?(.*)$/.exec(line) ?? [];
    return `${priority}${JSON.parse(json).msg}`;
  });
  assert.ok(told.includes("server started"), lines.join("\n"));
  assert.ok(told.includes("<4>upstream does not answer"), lines.join("\n"));
});

Deno.test("log: lines for people show the address and the client's settings", async () => {
  const last = ["upstream does not answer", "✗ http://127.0.0.1:1 does not answer"];
  const text = await firstLines(() => "1:2", ["--log-format=pretty"], last);

  const url = /^larder \S+ listens at (http:\S+)$/m.exec(text)?.[1] ?? "";
  assert.match(text, new RegExp(`^    extra-substituters = ${url}$`, "m"));
  assert.match(text, /^ {4}extra-trusted-public-keys = larder\.test:\S+=$/m);
  assert.match(text, /^ {4}connect-timeout = 3$/m);
  assert.match(text, /^ {2}✗ http:\/\/127\.0\.0\.1:1 does not answer$/m);
  assert.ok(text.indexOf("server started") < text.indexOf("listens at"), text);
  assert.match(text, /^\d\d:\d\d:\d\d WARN {2}127\.0\.0\.1:1 +upstream does not answer /m);
  assert.doesNotMatch(text, /[<{]/);
});
