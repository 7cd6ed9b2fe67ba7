import assert from "node:assert/strict";
import { upstreamsPart } from "../../../../src/http/page/upstreams_part.ts";
import type { Stats, UpstreamStats } from "../../../../src/http/stats/stats.ts";

const AT = "2026-01-02T12:00:00.000Z";

const UP: UpstreamStats = {
  ...{
    url: "https://a.example",
    is_up: true,
    sends_nars: true,
    waits: { count: 0, late: 0, total_ms: 0, longest_ms: 0 },
    slow_answers: { count: 0, longest_ms: 0 },
    last_wait: null,
    nar_bytes_per_second: null,
    priority: null,
    last_answer: null,
    last_error: null,
  },
  last_nar_answer: null,
  ...{ answers: { found: 0, absent: 0, failed: 0 }, latencies_ms: [] },
};

/** The tone of the card, and its text. */
function shown(signs: Partial<UpstreamStats>) {
  const stats = { upstreams: [{ ...UP, ...signs }], at: AT } as unknown as Stats;
  const { text } = upstreamsPart(stats, { isWhole: false, range: "hour" });
  const told = text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
  return { tone: /class="tone (\w+)"/.exec(text)?.[1], told };
}

function answered(result: string): Partial<UpstreamStats> {
  const status = result === "status" ? 503 : null;
  const last_error = { request: "narinfo", reason: result, status, at: AT, hint: "do it" } as const;
  return { last_answer: { result, at: AT }, last_error };
}

Deno.test("page: an upstream that answers with errors fails, until it answers otherwise", () => {
  for (const result of ["status", "garbage"]) {
    const { tone, told } = shown(answered(result));
    assert.equal(tone, "fair");
    assert.doesNotMatch(told, /failed just now/, "the last error says it");
    assert.match(told, /^fails https:.* Last error just now : it(s answer| answered) [^.]+\.$/);
  }
  const probed = answered("unreachable");
  const later = new Date(Date.parse(AT) + 2_000).toISOString();
  const last_error = probed.last_error ? { ...probed.last_error, at: later } : null;
  assert.doesNotMatch(shown({ ...probed, is_up: false, last_error }).told, /failed/);
  const again = shown({ ...answered("status"), last_answer: { result: "absent", at: AT } });
  assert.equal(again.tone, "good");
  assert.match(again.told, /^up .*it answered with HTTP status 503\.$/);
});

Deno.test("page: an upstream that no request but a probe went to shows the probe's error", () => {
  const { last_error = null } = answered("unreachable");
  const { tone, told } = shown({ is_up: false, last_error });
  assert.equal(tone, "bad");
  assert.match(told, /^down .* no request yet .*it cannot be reached\.$/);
});

Deno.test("page: an upstream that answers NAR requests with errors fails, for a minute", () => {
  const { last_error = null } = answered("status");
  const at = (minutes: number) => new Date(Date.parse(AT) - minutes * 60_000).toISOString();
  const failedAt = (minutes: number) => ({
    last_answer: { result: "found", at: AT },
    last_nar_answer: { result: "status", at: at(minutes) },
    last_error: last_error && { ...last_error, request: "nar" as const, at: at(minutes) },
  });
  const { tone, told } = shown(failedAt(0));
  assert.equal(tone, "fair");
  assert.match(told, /^fails .* it answered a NAR request with HTTP status 503\.$/);
  assert.equal(shown(failedAt(1)).tone, "good");
});

Deno.test("page: an upstream's last answer is the newest, be it a NAR", () => {
  const before = new Date(Date.parse(AT) - 60_000).toISOString();
  const [older, newest] = [{ result: "absent", at: before }, { result: "found", at: AT }];
  assert.match(shown({ last_nar_answer: newest }).told, /NAR found just now/);
  assert.match(shown({ last_answer: older, last_nar_answer: newest }).told, /NAR found just now/);
  assert.doesNotMatch(shown({ last_answer: newest, last_nar_answer: older }).told, /NAR/);
});

Deno.test("page: an upstream's rate stands beside its latency, and the path that waited", () => {
  const slow = {
    ...{ ...UP, latencies_ms: [5, 5, 6], nar_bytes_per_second: 500 * 1024 },
    slow_answers: { count: 4, longest_ms: 5_000 },
    last_wait: {
      path: "hello-2.12",
      ms: 4_000,
      at: "2026-01-02T12:00:00.000Z",
      bytes_per_second: null,
    },
  };
  const text = shown(slow).told;
  assert.match(text, /median 5(\.0)? ms *NARs 500(\.0)? KiB\/s/);
  assert.match(
    text,
    /4 answers took over a second, 5(\.0)? ?s at most; last waited for it: hello-2/,
  );
});
