import assert from "node:assert/strict";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { LoggerProvider, type ReadableLogRecord } from "@opentelemetry/sdk-logs";
import { type ReadableSpan, TracerProvider } from "@opentelemetry/sdk-trace";
import { lineSenders } from "../../../src/telemetry/otel/line_senders.ts";
import { metricData } from "../../../src/telemetry/otel/otel.ts";
import { type Otlp, recordsOf, samplesOf, spansOf } from "../../support/otlp.ts";

/** journald's; see `LineMax=` in journald.conf(5). */
const LINE_BYTES_MAX = 48 * 1_024;

const RESOURCE = resourceFromAttributes({ "service.name": "larder" });

type Facts = Readonly<Record<string, string>>;

function spanWith(facts: Facts, { name = "work", resource = RESOURCE } = {}): ReadableSpan {
  const ended: ReadableSpan[] = [];
  const ignored = { onStart() {}, forceFlush: async () => {}, shutdown: async () => {} };
  const processor = { ...ignored, onEnd: (span: ReadableSpan) => void ended.push(span) };
  const provider = new TracerProvider({ resource, spanProcessors: [processor] });
  provider.getTracer("test").startSpan(name, { attributes: facts }).end();
  const [span] = ended;
  assert.ok(span !== undefined);
  return span;
}

function recordWith(facts: Facts, { body = "something happened", resource = RESOURCE } = {}) {
  const emitted: ReadableLogRecord[] = [];
  const ignored = { forceFlush: async () => {}, shutdown: async () => {} };
  const processor = { ...ignored, onEmit: (one: ReadableLogRecord) => void emitted.push(one) };
  const provider = new LoggerProvider({ resource, processors: [processor] });
  provider.getLogger("test").emit({ body, attributes: facts });
  const [record] = emitted;
  assert.ok(record !== undefined);
  return record;
}

function counterWith(labels: readonly Facts[], resource = RESOURCE) {
  const points = labels.map((one, at) => ({ labels: one, value: at }));
  const family = { name: "things_total", help: "Things", type: "counter", points } as const;
  const other = { name: "size", help: "Size", type: "gauge", points: [] } as const;
  return metricData([family, other], resource, { startMs: 0, endMs: 1 });
}

/** The written lines, parsed; each is one line, and short enough. */
async function linesOf(
  send: (senders: ReturnType<typeof lineSenders>) => Promise<void>,
): Promise<readonly Otlp[]> {
  const written: string[] = [];
  await send(lineSenders({ write: (line) => void written.push(line) }));
  return written.map((line) => {
    assert.equal(line.indexOf("\n"), line.length - 1);
    const bytes = new TextEncoder().encode(line).length;
    assert.ok(bytes < LINE_BYTES_MAX, `${bytes} bytes`);
    return JSON.parse(line);
  });
}

Deno.test("otlp lines: each span, log record and metric has a line of its own", async () => {
  const spans = Array.from({ length: 512 }, (_, at) => spanWith({ at: String(at) }));
  const traced = await linesOf(({ traces }) => traces(spans));
  assert.deepEqual(traced.map((line) => spansOf([line]).map(({ facts }) => facts["at"])), [
    ...spans.map((_, at) => [String(at)]),
  ]);
  const records = Array.from({ length: 512 }, (_, at) => recordWith({ at: String(at) }));
  const logged = await linesOf(({ logs }) => logs(records));
  assert.deepEqual(logged.map((line) => recordsOf([line]).length), records.map(() => 1));
  const measured = await linesOf(({ metrics }) => metrics(counterWith([{ a: "1" }, { a: "2" }])));
  const names = measured.map((line) => line.resourceMetrics[0].scopeMetrics[0].metrics[0].name);
  assert.deepEqual(names, ["things_total", "size"]);
});

/** In JSON a NUL is six bytes of a character; the others are halves of a pair, where cut. */
const LONG = { nul: "\0".repeat(1_000_000), pairs: `x${"😀".repeat(500_000)}` };

const MANY = Object.fromEntries(
  Array.from({ length: 1_000 }, (_, at) => [`${at}${"\0".repeat(99)}`, "\0".repeat(9_999)]),
);

Deno.test("otlp lines: a long record is cut, and stays readable", async () => {
  const [span] = spansOf(await linesOf(({ traces }) => traces([spanWith({ a: "1", ...LONG })])));
  assert.equal(span?.facts["a"], "1");
  assert.match(String(span.facts["pairs"]), /^x(😀){10,}\ufffd?$/u);
  assert.match(String(span.facts["nul"]), /^\0{10,}$/);
  const [record] = recordsOf(
    await linesOf(({ logs }) => logs([recordWith(LONG, { body: LONG.nul })])),
  );
  assert.match(record.msg, /^\0{10,}$/);
});

Deno.test("otlp lines: no record is too much for a line, whatever it holds", async () => {
  const resource = resourceFromAttributes(MANY);
  const span = spanWith(MANY, { name: LONG.nul, resource });
  assert.equal((await linesOf(({ traces }) => traces([span]))).length, 1);
  const record = recordWith(MANY, { body: LONG.pairs, resource });
  assert.equal((await linesOf(({ logs }) => logs([record]))).length, 1);
  const metrics = counterWith([MANY], resource);
  assert.equal((await linesOf((senders) => senders.metrics(metrics))).length, 2);
});

Deno.test("otlp lines: the series of a large metric are shared out among lines", async () => {
  const labels = Array.from({ length: 1_001 }, (_, at) => ({ route: `/route/${at}` }));
  const lines = await linesOf(({ metrics }) => metrics(counterWith(labels)));
  assert.ok(lines.length > 2 && lines.length < 20);
  const samples = lines.flatMap((line) => [...samplesOf(line)]);
  assert.deepEqual(samples, [
    ...labels.map(({ route }, at) => [`things_total{route="${route}"}`, at]),
  ]);
});
