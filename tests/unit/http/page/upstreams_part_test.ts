import assert from "node:assert/strict";
import { upstreamsPart } from "../../../../src/http/page/upstreams_part.ts";
import type { Stats, UpstreamStats } from "../../../../src/http/stats/stats.ts";

const AT = "2026-01-02T12:00:00.000Z";

const UP: UpstreamStats = {
  ...{ url: "https://a.example", is_up: true, priority: null, last_answer: null, last_error: null },
  ...{ answers: { found: 0, absent: 0, failed: 0 }, latencies_ms: [] },
};

/** The tone of the card, and its text. */
function shown(signs: Partial<UpstreamStats>) {
  const stats = { upstreams: [{ ...UP, ...signs }], at: AT } as unknown as Stats;
  const { text } = upstreamsPart(stats);
  const told = text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
  return { tone: /class="tone (\w+)"/.exec(text)?.[1], told };
}

function answered(result: string): Partial<UpstreamStats> {
  const last_error = { reason: result, at: AT, hint: "look at it" };
  return { last_answer: { result, at: AT }, last_error };
}

Deno.test("page: an upstream that answers with errors fails, until it answers otherwise", () => {
  for (const result of ["status", "garbage"]) {
    const { tone, told } = shown(answered(result));
    assert.equal(tone, "fair");
    assert.match(told, /^fails https:.* What to do: look at it\.$/);
  }
  const again = shown({ ...answered("status"), last_answer: { result: "absent", at: AT } });
  assert.equal(again.tone, "good");
  assert.match(again.told, /^up .*it answered with an error\.$/);
});

Deno.test("page: an upstream that no request but a probe went to shows the probe's error", () => {
  const { last_error = null } = answered("unreachable");
  const { tone, told } = shown({ is_up: false, last_error });
  assert.equal(tone, "bad");
  assert.match(told, /^down .* no request yet .*it cannot be reached\. What to do: look at it\.$/);
});
