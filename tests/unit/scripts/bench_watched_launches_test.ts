import assert from "node:assert/strict";
import type { CpuTimes } from "../../../scripts/bench/cpu_times.ts";
import type { Launcher } from "../../../scripts/bench/server.ts";
import { WatchedLaunches } from "../../../scripts/bench/watched_launches.ts";

/** A launcher of servers without a process, whose main thread has used `seconds`. */
function launcherOf(seconds: number): Launcher {
  let ended = false;
  const cpuTimes = (): CpuTimes => {
    assert.ok(!ended, "its process has ended");
    return { threads: new Map([["main", seconds]]), kernelSeconds: seconds / 2 };
  };
  const nothing = () => 0;
  return {
    name: "larder",
    launch: () =>
      Promise.resolve({
        ...{ name: "larder", url: "", residentBytes: nothing, peakBytes: nothing },
        residentParts: () => ({ files: 0, own: 0 }),
        cpuSeconds: () => seconds,
        cpuTimes,
        [Symbol.asyncDispose]: () => Promise.resolve(void (ended = true)),
      }),
  };
}

Deno.test("bench: the times of servers that a measure launches count, ended or not", async () => {
  const launched = new WatchedLaunches();
  {
    await using _ended = await launched.watch(launcherOf(3)).launch("");
  }
  await launched.watch(launcherOf(4)).launch("");

  const { threads, kernelSeconds } = launched.cpuTimes();

  assert.equal(threads.get("main"), 7);
  assert.equal(kernelSeconds, 3.5);
});
