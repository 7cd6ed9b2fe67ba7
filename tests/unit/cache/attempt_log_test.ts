import assert from "node:assert/strict";
import type { FetchOutcome } from "../../../src/cache/fetch/nar_fetcher.ts";
import { AttemptLog } from "../../../src/cache/sources/attempt_log.ts";
import { Demotions } from "../../../src/cache/sources/nar_candidates.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import type { UpstreamReading } from "../../../src/upstream/upstream.ts";
import { narOf } from "../../support/metadata_rows.ts";

const MEMBER = "http://larder-1.example:8501";
const UPSTREAM = "https://cache.example.org";
const OTHERS = ["https://second.example.org", "https://third.example.org"] as const;

const END: FetchOutcome = {
  type: "end",
  fileSize: 10,
  digest: new Uint8Array(32),
  maybeShort: false,
};

const failed = (reason: "timeout" | "outrun" | "cancelled"): FetchOutcome => (
  { type: "failed", reason, detail: "" }
);

/** The log of the attempts at one NAR, and its metrics and lines. */
function scene() {
  const messages: string[] = [];
  const metrics = new Metrics({ domains: { upstreams: [UPSTREAM, ...OTHERS] } });
  const log = createLogger("info", { write: (line) => messages.push(JSON.parse(line).msg) });
  const noted: string[] = [];
  const slow: string[] = [];
  const pool = {
    noteNar: (url: string, { kind }: UpstreamReading) => void noted.push(`${url} ${kind}`),
    noteNarTime: (url: string, tookMs: number) => void (tookMs === Infinity && slow.push(url)),
    busy() {},
    has: (url: string) => url !== MEMBER,
  };
  const attempts = new AttemptLog(
    { demotions: new Demotions(), pool, log, metrics },
    narOf("a").name,
    "request",
  );
  const counts = () =>
    (["whole", "late", "failed"] as const).map((result) => (
      metrics.value("member_reads_total", { result })
    ));
  return { attempts, messages, counts, noted, slow };
}

Deno.test("attempt log: a request to an upstream beside a silent member makes it late", () => {
  const { attempts, messages, counts } = scene();
  attempts.asking(MEMBER, 0);
  attempts.asking(UPSTREAM, 0);
  attempts.answered(MEMBER, failed("outrun"));
  attempts.answered(UPSTREAM, END);
  assert.deepEqual(counts(), [0, 1, 0]);
  assert.deepEqual(messages, [
    "reading nar from another member",
    "member is late: asking an upstream too",
    "downloading nar from upstream",
  ]);
});

Deno.test("attempt log: a member is late once, also where it wins at last", () => {
  const { attempts, counts } = scene();
  attempts.asking(MEMBER, 0);
  for (let asked = 0; asked < 2; asked++) attempts.asking(UPSTREAM, 0);
  attempts.answered(MEMBER, END);
  assert.deepEqual(counts(), [0, 1, 0]);
});

Deno.test("attempt log: a member's end and its failure are counted, a client's leaving not", () => {
  const outcomes = [END, failed("timeout"), failed("cancelled")];
  const counted = outcomes.map((outcome) => {
    const { attempts, messages, counts } = scene();
    attempts.asking(MEMBER, 0);
    attempts.answered(MEMBER, outcome);
    attempts.asking(UPSTREAM, 5);
    return { counts: counts(), isLate: messages.some((message) => message.includes("late")) };
  });
  assert.deepEqual(counted.map(({ counts }) => counts), [[1, 0, 0], [0, 0, 1], [0, 0, 0]]);
  assert.deepEqual(counted.map(({ isLate }) => isLate), [false, false, false]);
});

Deno.test("attempt log: a download is resumed when an upstream answers with the rest", () => {
  const { attempts, messages } = scene();
  for (let asked = 0; asked < 3; asked++) attempts.asking(UPSTREAM, 5);
  assert.deepEqual(messages, []);
  attempts.begun(UPSTREAM, 5);
  assert.deepEqual(messages, ["nar download resumed"]);
});

Deno.test("attempt log: an upstream is up as soon as it begins to send", () => {
  const { attempts, messages, noted } = scene();
  attempts.begun(MEMBER, 0);
  attempts.begun(UPSTREAM, 0);
  assert.deepEqual(noted, [`${UPSTREAM} found`]);
  assert.deepEqual(messages, []);
});

Deno.test("attempt log: each outrun upstream is slow, except the last one with a request", () => {
  const [second, third] = OTHERS;
  for (const winner of [UPSTREAM, second, third]) {
    const { attempts, slow } = scene();
    for (const upstream of [UPSTREAM, ...OTHERS]) attempts.asking(upstream, 0);
    attempts.begun(winner, 0);
    const losers = [UPSTREAM, ...OTHERS].filter((upstream) => upstream !== winner);
    for (const loser of losers) attempts.answered(loser, failed("outrun"));
    assert.deepEqual(slow, losers.filter((loser) => loser !== third));
  }
});

Deno.test("attempt log: an upstream that has failed is not outrun as well", () => {
  const [second] = OTHERS;
  const { attempts, slow } = scene();
  attempts.asking(UPSTREAM, 0);
  attempts.answered(UPSTREAM, { type: "absent" });
  attempts.asking(second, 0);
  attempts.begun(second, 0);
  assert.deepEqual(slow, []);
});

Deno.test("attempt log: one that answers beside another is not outrun either", () => {
  const [second] = OTHERS;
  const { attempts, slow } = scene();
  for (const upstream of [UPSTREAM, second]) attempts.asking(upstream, 0);
  attempts.answered(UPSTREAM, { type: "absent" });
  attempts.begun(second, 0);
  assert.deepEqual(slow, []);
});

Deno.test("attempt log: an upstream that gets another request can be outrun again", () => {
  const [second, third] = OTHERS;
  const { attempts, slow } = scene();
  for (const upstream of [UPSTREAM, second]) attempts.asking(upstream, 0);
  attempts.begun(second, 0);
  attempts.asking(UPSTREAM, 5);
  // The outcome of its first request.
  attempts.answered(UPSTREAM, failed("outrun"));
  attempts.asking(third, 5);
  attempts.begun(third, 5);
  assert.deepEqual(slow, [UPSTREAM, UPSTREAM]);
});
