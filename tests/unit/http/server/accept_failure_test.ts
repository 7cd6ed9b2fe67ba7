import assert from "node:assert/strict";
import { acceptFailureOf } from "../../../../src/http/server/accepting.ts";

const FAILURES: readonly (readonly [error: unknown, meaning: string])[] = [
  [coded("EMFILE", "Too many open files (os error 24)"), "no file handles"],
  [coded("ENFILE", "Too many open files in system (os error 23)"), "no file handles"],
  [new Error("Too many open files (os error 24)"), "no file handles"],
  [new Deno.errors.NotConnected("Not connected (os error 107)"), "client gone"],
  [new Deno.errors.ConnectionAborted("Aborted (os error 103)"), "client gone"],
  [new Deno.errors.ConnectionReset("Reset (os error 104)"), "client gone"],
  [new Error("Cannot allocate memory (os error 12)"), "client gone"],
  [new Error("Host unreachable (os error 240)"), "client gone"],
  [new Deno.errors.BadResource("Listener has been closed"), "listener closed"],
  [new Deno.errors.Interrupted("operation canceled"), "listener closed"],
];

for (const [error, meaning] of FAILURES) {
  Deno.test(`accept: ${error} means "${meaning}"`, () => {
    assert.equal(acceptFailureOf(error), meaning);
  });
}

Deno.test("accept: this Deno's errors without file handles are read as such", async () => {
  const script = `
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const files = [await Deno.connect(listener.addr)];
    try {
      for (;;) files.push(Deno.openSync("/dev/null"));
    } catch (error) {
      await listener.accept().catch(tell);
      await Deno.connect(listener.addr).catch(tell);
    }
    function tell({ code, message }) {
      Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify({ code, message }) + "\\n"));
    }`;
  const args = ["-c", 'ulimit -n 60; exec "$0" eval "$1"', Deno.execPath(), script];
  const { stdout } = await new Deno.Command("sh", { args, env: { NO_COLOR: "1" } }).output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assert.equal(lines.length, 2);
  for (const line of lines) {
    const { code, message } = JSON.parse(line);
    assert.equal(acceptFailureOf(coded(code, message)), "no file handles");
  }
});

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
