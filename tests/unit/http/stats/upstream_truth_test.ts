import assert from "node:assert/strict";
import fc from "fast-check";
import type { SizeStats } from "../../../../src/http/stats/stats.ts";
import { NarRates } from "../../../../src/upstream/pooled_upstream.ts";
import { upstreamStats } from "../../../../src/http/stats/gather_stats.ts";
import { judgedProblems, upstreamStateOf } from "../../../../src/http/stats/shown_state.ts";
import { verdictOf } from "../../../../src/http/stats/verdict.ts";
import type { StorePathHash } from "../../../../src/nix/store_path.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { isPresent, RecentProblems } from "../../../../src/telemetry/recent_problems.ts";
import { LastAnswers } from "../../../../src/upstream/last_answers.ts";
import {
  NoAnswer,
  type QueuedNarinfoSource,
  type UpstreamReading,
} from "../../../../src/upstream/upstream.ts";
import { createUpstreamLog } from "../../../../src/upstream/upstream_log.ts";
import { UpstreamPool } from "../../../../src/upstream/upstream_pool.ts";
import { PlayedTime } from "../../../support/played_time.ts";
import { checkProperty } from "../../../support/property.ts";

const HASH = "0".repeat(32) as StorePathHash;
const URLS = ["https://a.example", "https://b.example"];
const SIZE: SizeStats = {
  ...{
    used_bytes: 0,
    reserved_bytes: 0,
    pinned_bytes: 0,
    database_bytes: 0,
    recompressed_bytes: 0,
    evicted_bytes: 0,
    evicted_entries: 0,
  },
  ...{
    limit_bytes: null,
    limit_source: "unlimited",
    disk_reserve_bytes: null,
    disk_free_bytes: null,
  },
};

type Answer = "absent" | "status" | "garbage" | "timeout" | "unreachable";
type Step =
  /** From now on this upstream answers so. */
  | { readonly type: "become"; readonly which: number; readonly answer: Answer }
  | { readonly type: "narinfo" }
  | { readonly type: "nar"; readonly which: number; readonly answer: Answer | "found" }
  | { readonly type: "wait"; readonly ms: number };

const WHICH = fc.constantFrom(0, 1);
const ANSWER = fc.constantFrom<Answer>("absent", "status", "garbage", "timeout", "unreachable");
const NAR_ANSWER = fc.constantFrom<Answer | "found">(
  "found",
  "absent",
  "status",
  "timeout",
  "unreachable",
);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constant("become" as const), which: WHICH, answer: ANSWER }),
  fc.record({ type: fc.constant("narinfo" as const) }),
  fc.record({ type: fc.constant("nar" as const), which: WHICH, answer: NAR_ANSWER }),
  fc.record({ type: fc.constant("wait" as const), ms: fc.constantFrom(1, 3_000, 31_000, 61_000) }),
);

const HISTORIES: Readonly<Record<string, readonly [Answer, Answer, ...Step[]]>> = {
  "dead at the start, then a look finds it": [
    ...["unreachable", "unreachable"] as const,
    ...URLS.map((_, which) => ({ type: "become", which, answer: "absent" } as const)),
    { type: "wait", ms: 34_000 },
  ],
  "an error, then a look without a client finds it": [
    ...["absent", "status"] as const,
    ...[{ type: "narinfo" }, { type: "wait", ms: 61_000 }] as const,
    ...[{ type: "become", which: 1, answer: "absent" }, { type: "wait", ms: 8_000 }] as const,
  ],
  "a timeout, then a narinfo": [
    ...["absent", "absent"] as const,
    ...[{ type: "become", which: 1, answer: "timeout" }, { type: "narinfo" }] as const,
    ...[{ type: "become", which: 1, answer: "absent" }, { type: "narinfo" }] as const,
  ],
  "a NAR's timeout, then a NAR": [
    ...["absent", "absent"] as const,
    ...[{ type: "nar", which: 1, answer: "timeout" }] as const,
    ...[{ type: "nar", which: 1, answer: "found" }] as const,
  ],
  "an error to a NAR request, then silence": [
    ...["absent", "absent"] as const,
    ...[{ type: "nar", which: 1, answer: "status" }, { type: "wait", ms: 61_000 }] as const,
  ],
  "down, then a probe finds it": [
    ...["absent", "absent"] as const,
    ...Array(3).fill({ type: "nar", which: 1, answer: "timeout" }),
    { type: "wait", ms: 31_000 },
  ],
};

for (const [name, [first, second, ...steps]] of Object.entries(HISTORIES)) {
  Deno.test(`upstream: ${name}: all is well, and its problem is over`, async () => {
    using world = new World([first, second]);
    await world.start();
    let problems = 0;
    for (const step of steps) {
      problems += world.presentCount;
      await world.take(step);
      world.check();
    }
    assert.ok(problems > 0, "it had a problem before");
    assert.equal(world.presentCount, 0);
  });
}

checkProperty(
  "upstream: whatever happens, the status line, the rows and the problems say the same",
  fc.asyncProperty(ANSWER, ANSWER, fc.array(STEP, { maxLength: 12 }), async (a, b, steps) => {
    using world = new World([a, b]);
    await world.start();
    for (const step of steps) {
      await world.take(step);
      world.check();
    }
  }),
);

/** Two upstreams, as far as the pages show them, in played time. */
class World implements Disposable {
  readonly #time = new PlayedTime();
  readonly #answers: [Answer, Answer];
  readonly #nowMs = () => this.#time.nowMs;
  readonly #lastAnswers = new LastAnswers(this.#nowMs);
  readonly #problems = new RecentProblems(this.#nowMs);
  readonly #pool: UpstreamPool;

  constructor(answers: [Answer, Answer]) {
    this.#answers = answers;
    const lastAnswers = this.#lastAnswers;
    const log = this.#problems.watch(createLogger("error", { write() {} }));
    const upstreamLog = createUpstreamLog({ log, lastAnswers, nowMs: this.#nowMs });
    this.#pool = new UpstreamPool({
      upstreams: URLS.map((url, which) => this.#source(url, which)),
      observe(upstream, reading, { requestId }) {
        upstreamLog.reading(upstream, reading, requestId);
        lastAnswers.note(upstream, reading);
      },
      observeNar(upstream, reading) {
        upstreamLog.reading(upstream, reading);
        lastAnswers.noteNar(upstream, reading);
      },
      skipped() {},
      waited: () => false,
      askedAgain: (upstream, reading) => {
        upstreamLog.reading(upstream, reading);
        lastAnswers.note(upstream, reading);
      },
      quick() {},
      noted: upstreamLog.noted,
      changed: upstreamLog.changed,
    });
  }

  get presentCount(): number {
    return this.#shown().present.length;
  }

  async start(): Promise<void> {
    await this.#pool.start();
    this.check();
  }

  async take(step: Step): Promise<void> {
    if (step.type === "become") this.#answers[step.which] = step.answer;
    if (step.type === "narinfo") void this.#pool.narinfo(HASH, { requestId: "test" });
    if (step.type === "nar") this.#pool.noteNar(URLS[step.which] ?? "", narReadingOf(step.answer));
    await this.#time.advance(step.type === "wait" ? step.ms : 0);
  }

  check(): void {
    const { upstreams, present, verdict, atMs } = this.#shown();
    const failing = upstreams.filter((one) => upstreamStateOf(one, atMs) !== "up");
    assert.deepEqual(
      present.map(({ facts }) => facts["upstream"]).toSorted(),
      failing.map(({ url }) => url),
    );
    assert.equal(verdict.is_well, present.length === 0);
    const isGrave = verdict.faults.some(({ level }) => level === "error");
    for (const { level } of present) assert.equal(level, isGrave ? "error" : "warn");
  }

  [Symbol.dispose](): void {
    this.#pool[Symbol.dispose]();
    this.#time[Symbol.dispose]();
  }

  #shown() {
    const atMs = this.#nowMs();
    const upstreams = upstreamStats({
      pool: this.#pool,
      lastAnswers: this.#lastAnswers,
      rates: new NarRates(),
    });
    const problems = judgedProblems(this.#problems.list(), upstreams, atMs);
    const verdict = verdictOf({ upstreams, size: SIZE, problems, atMs });
    return { upstreams, verdict, atMs, present: problems.filter((one) => isPresent(one, atMs)) };
  }

  #source(url: string, which: number): QueuedNarinfoSource {
    return {
      ...{ url, priority: undefined },
      describe: () => {
        const reading = readingOf(this.#answers[which] ?? "absent");
        if (reading.kind !== "failed") return Promise.resolve(40);
        const { reason, detail } = reading;
        const hasNoAnswer = reason === "timeout" || reason === "unreachable";
        const error = hasNoAnswer ? new NoAnswer(reason, detail) : new Error(detail);
        this.#lastAnswers.undescribed(url, error);
        return Promise.reject(error);
      },
      narinfo: () => Promise.resolve(readingOf(this.#answers[which] ?? "absent")),
      reach: () => Promise.resolve(true),
    };
  }
}

function narReadingOf(answer: Answer | "found"): UpstreamReading {
  return answer === "found" ? { kind: answer } : readingOf(answer);
}

function readingOf(answer: Answer): Exclude<UpstreamReading, { kind: "found" }> {
  if (answer === "absent") return { kind: answer };
  const status = answer === "status" ? { status: 503 } : {};
  return { kind: "failed", reason: answer, detail: answer, ...status };
}
