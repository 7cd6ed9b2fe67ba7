import assert from "node:assert/strict";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { LineQueue } from "../../../src/telemetry/line_queue.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";

/** Takes all that is written; each write waits for `ready`. */
function writer(ready: Promise<void> = Promise.resolve()) {
  const writes: string[] = [];
  return {
    writes,
    async write(bytes: Uint8Array): Promise<number> {
      await ready;
      writes.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
}

Deno.test("line queue: the lines of a few turns leave in one write, in order", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const out = writer();
  const queue = new LineQueue(out);
  await played.play((async () => {
    for (let at = 0; at < 3; at++) {
      queue.write(`${at}\n`);
      // `LineQueue` gathers lines for 5 ms.
      if (at === 1) await clock.pause(4);
    }
    await queue.flushed();
  })());
  assert.deepEqual(out.writes, ["0\n1\n2\n"]);
});

Deno.test("line queue: lines that come during a write leave whole in the next one", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const out = writer(promise);
  const queue = new LineQueue({
    write(bytes) {
      begun.resolve();
      return out.write(bytes.subarray(0, 7));
    },
  });
  queue.write("the first line\n");
  await begun.promise;
  queue.write("näxt\n");
  resolve();
  await queue.flushed();
  assert.deepEqual(out.writes.join(""), "the first line\nnäxt\n");
});

Deno.test("line queue: a reader that stalls loses lines, and then learns how many", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const out = writer(promise);
  const queue = new LineQueue(out);
  const line = `${"x".repeat(999)}\n`;
  for (let at = 0; at < 3_000; at++) queue.write(line);
  resolve();
  await queue.flushed();
  const lines = out.writes.join("").trimEnd().split("\n");
  const notice = JSON.parse(lines.pop() ?? "");
  assert.equal(notice.msg, "log lines dropped");
  assert.equal(lines.length + notice.count, 3_000);
});

Deno.test("line queue: once a full disk has room, the log says how many it lost", async () => {
  const out = writer();
  let left = 7;
  const queue = new LineQueue({
    write(bytes) {
      if (left === 0) return Promise.reject(new Error("No space left on device"));
      const taken = out.write(bytes.subarray(0, left));
      left -= Math.min(left, bytes.length);
      return taken;
    },
  });
  for (const line of ["first\n", "second\n"]) queue.write(line);
  await queue.flushed();
  queue.write("third\n");
  await queue.flushed();
  left = Infinity;
  queue.write("fourth\n");
  await queue.flushed();
  const [first, cut, fourth, notice = ""] = out.writes.join("").split("\n");
  assert.deepEqual([first, cut, fourth], ["first", "s", "fourth"]);
  const { msg, count } = JSON.parse(notice);
  // The second, which was cut, and the third.
  assert.deepEqual([msg, count], ["log lines dropped", 2]);
});
