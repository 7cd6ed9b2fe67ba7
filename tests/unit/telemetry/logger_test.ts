import assert from "node:assert/strict";
import { createLogger, LOG_LEVELS, type LogLevel } from "../../../src/telemetry/logger.ts";

function linesOf(level: LogLevel, work: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  work(createLogger(level, { write: (line) => lines.push(line) }));
  return lines;
}

Deno.test("log: a line has level, time and message in front, and then the facts in order", () => {
  const [line = ""] = linesOf("info", (log) => log.info("a message", { b: 1, a: "x", c: true }));
  const { ts } = JSON.parse(line);
  assert.match(ts, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
  const rest = '"msg":"a message","b":1,"a":"x","c":true';
  assert.equal(line, `{"level":"info","ts":"${ts}",${rest}}\n`);
});

Deno.test("log: a line has whole figures, and so has a collector's copy", () => {
  const facts = {
    from: 19,
    ms: 16.48258199999998,
    lead_s: -0.4,
    rate: NaN,
    name: "1.5",
    hit: true,
  };
  const whole = { from: 19, ms: 16, lead_s: 0, name: "1.5", hit: true };
  const copies: unknown[] = [];
  const lines: string[] = [];
  const tracing = {
    tracer: { ids: () => undefined },
    copyLog: (_: LogLevel, _msg: string, facts: unknown) => void copies.push(facts),
  };
  createLogger("info", { write: (line) => lines.push(line) }, tracing).info("migrated", facts);
  const [{ level: _, ts: _ts, msg: _msg, ...told }] = lines.map((line) => JSON.parse(line));
  assert.deepEqual(told, { ...whole, rate: null });
  assert.deepEqual(copies, [{ ...whole, lead_s: -0, rate: NaN }]);
});

Deno.test("log: whatever a message and its facts hold, a line is one line of JSON", () => {
  const text = 'quote " backslash \\ line\nend \u0000 \u2028 \ud800';
  const [line = "", ...more] = linesOf("info", (log) => log.info(text, { text, size: NaN }));
  assert.deepEqual([more, line.indexOf("\n")], [[], line.length - 1]);
  const { level, msg, text: fact, size } = JSON.parse(line);
  assert.deepEqual([level, msg, fact, size], ["info", text, text, null]);
});

Deno.test("log: lines below the level are not written, and said to be off", () => {
  for (const [at, level] of LOG_LEVELS.entries()) {
    const lines = linesOf(level, (log) => {
      for (const one of LOG_LEVELS) log.event("request-failed", {}, one);
      assert.deepEqual([...log.levels], LOG_LEVELS.slice(at));
    });
    assert.deepEqual(lines.map((line) => JSON.parse(line).level), LOG_LEVELS.slice(at));
  }
});
