import assert from "node:assert/strict";
import { cpuBetween, type CpuTimes } from "../../../scripts/bench/cpu_times.ts";
import { type Figure, ofProxy, type Target } from "../../../scripts/bench/figure.ts";
import { report } from "../../../scripts/bench/report.ts";
import { LARDER, PEER, PROXY } from "../../../scripts/bench/server.ts";

const CPU: CpuTimes = { threads: new Map([["worker-1", 1], ["main", 3]]), kernelSeconds: 2 };

function reported(target: Target, values: Readonly<Record<string, number>>): string {
  const byServer = Object.entries(values).map(([name, value]) => [name, [value]] as const);
  const figure = { name: "cold NAR", unit: "MB/s", target } as const;
  return report([{ figure, values: new Map(byServer), cpu: CPU }], []);
}

Deno.test("bench report: a missed target is printed with where larder's time went", () => {
  const text = reported(ofProxy(0.6), { [LARDER]: 40, [PROXY]: 100 });
  assert.match(text, /\| ≥ 0\.6 of nginx proxy_cache \| MISSED \|/);
  assert.match(
    text,
    /^\* Missed: cold NAR\. Processor time of larder: main 75 %, worker-1 25 %; 50 % of all/m,
  );
});

Deno.test("bench report: a missed target is printed with the figures that it is made of", () => {
  const figures: readonly Figure[] = [
    { name: "memory", unit: "MB", target: { kind: "below", limit: 85 }, parts: ["of files"] },
    { name: "of files", unit: "MB", target: { kind: "none" } },
  ];
  const cpu: CpuTimes = { threads: new Map(), kernelSeconds: 0 };
  const results = figures.map((figure) => ({ figure, values: new Map([[LARDER, [99]]]), cpu }));
  assert.match(report(results, []), /^\* Missed: memory\. Its parts: of files, 99 MB\.$/m);
});

Deno.test("bench report: a reached target has no such line", () => {
  const text = reported(ofProxy(0.6), { [LARDER]: 60, [PROXY]: 100 });
  assert.match(text, /\| reached \|/);
  assert.doesNotMatch(text, /Missed/);
});

Deno.test("bench report: each of several servers sets a target, an absent one none", () => {
  const target: Target = { kind: "ratio", atLeast: { [PROXY]: 0.6, [PEER]: 1 } };
  assert.match(reported(target, { [LARDER]: 60, [PROXY]: 100, [PEER]: 61 }), /MISSED/);
  assert.match(reported(target, { [LARDER]: 60, [PROXY]: 100, [PEER]: 59 }), /reached/);
  assert.match(reported(target, { [LARDER]: 60, [PROXY]: 100 }), /reached/);
});

Deno.test("bench: the processor time of a run is the time that each thread used since", () => {
  const after: CpuTimes = { threads: new Map([["main", 5], ["worker-2", 1]]), kernelSeconds: 3 };
  assert.deepEqual(cpuBetween(CPU, after), {
    threads: new Map([["main", 2], ["worker-2", 1]]),
    kernelSeconds: 1,
  });
});
