import assert from "node:assert/strict";
import { eventually } from "../../support/eventually.ts";
import { testUnless } from "../../support/program.ts";
import { redisMissing } from "../../support/redis_server.ts";

testUnless(redisMissing, "matrix: interrupted, it ends its servers and its tests", async () => {
  const words = ["--quiet", "--allow-all", "scripts/matrix.ts", "--on", "redis"];
  const matrix = new Deno.Command(Deno.execPath(), {
    args: ["run", ...words, "tests/http/slow_clients_test.ts"],
    ...{ stdout: "piped", stderr: "null" },
  }).spawn();
  let printed = "";
  const reading = matrix.stdout.pipeThrough(new TextDecoderStream())
    .pipeTo(new WritableStream({ write: (text) => void (printed += text) }));
  await eventually("a test runs", () => printed.includes("running"));
  const started = descendantsOf(matrix.pid);
  assert.ok(started.some((pid) => commandOf(pid).includes("redis-server")));

  matrix.kill("SIGINT");

  await matrix.status;
  await reading;
  await eventually("all have ended", () => started.every((pid) => commandOf(pid) === ""));
});

function descendantsOf(pid: number): readonly number[] {
  const words = outputOf("cat", `/proc/${pid}/task/${pid}/children`).split(" ");
  const children = words.flatMap((word) => Number(word) || []);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Empty for a process that has ended. Deno itself reads no such file without all permissions. */
function commandOf(pid: number): string {
  return outputOf("cat", `/proc/${pid}/cmdline`);
}

function outputOf(program: string, ...args: string[]): string {
  return new TextDecoder().decode(new Deno.Command(program, { args }).outputSync().stdout);
}
