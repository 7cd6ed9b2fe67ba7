import assert from "node:assert/strict";
import type { FetchOutcome } from "../../../src/cache/fetch/nar_fetcher.ts";
import {
  Demotions,
  type MemberNarSources,
  OWN_COPY_URL,
} from "../../../src/cache/sources/nar_candidates.ts";
import { NarAttempts, type NarTarget } from "../../../src/cache/sources/nar_attempts.ts";
import { Mismatch } from "../../../src/cache/verify/check_nar.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { quietPool } from "../../support/quiet_pool.ts";

const UPSTREAMS = ["https://one.example", "https://two.example"] as const;
const WRONG = new Mismatch("file_hash", "it is another file");

const END: FetchOutcome = {
  type: "end",
  fileSize: 10,
  digest: new Uint8Array(32),
  maybeShort: false,
};

/** A target that each source brings 10 bytes, which is all of the file. */
class TestTarget implements NarTarget {
  received = 0;
  isGrowing = true;
  isPromised = false;
  isWanted = true;
  bytesPerSecond = undefined;
  readonly asked: string[] = [];
  startedOver = 0;
  isSizeDoubted = false;
  readonly #checked: (upstream: string) => void;

  constructor(checked: (upstream: string) => void) {
    this.#checked = checked;
  }

  async from(
    { upstream }: { readonly upstream: string },
    taken: () => void,
  ): Promise<FetchOutcome> {
    this.asked.push(upstream);
    await Promise.resolve();
    taken();
    this.received = 10;
    return END;
  }

  async judge(): Promise<void> {
    await Promise.resolve();
    this.#checked(this.asked.at(-1) ?? "");
  }

  refused(): void {}

  abandon(): void {}

  startOver(): void {
    this.startedOver++;
    this.received = 0;
  }

  doubtFile(): boolean {
    if (this.isSizeDoubted) return false;
    this.startOver();
    return this.isSizeDoubted = true;
  }
}

function attemptsFor(
  target: NarTarget,
  hedgeAfterMs = 1_000,
  { known = UPSTREAMS, level = "error", ...others }: {
    readonly known?: readonly string[];
    readonly level?: "warn" | "error";
    readonly members?: MemberNarSources;
  } = {},
) {
  const log: Record<string, unknown>[] = [];
  const sources = known.map((upstream) => ({ upstream, location: "nar/x" }));
  const metadata = {
    findNar: () => Promise.resolve(undefined),
    sourcesOf: () => Promise.resolve(sources),
    narinfosOf: () => Promise.resolve([]),
    apply: () => Promise.resolve(),
  };
  const pool = quietPool(UPSTREAMS);
  const demotions = new Demotions();
  const metrics = new Metrics({ domains: { upstreams: [...UPSTREAMS] } });
  const logger = createLogger(level, { write: (line) => log.push(JSON.parse(line)) });
  const deps = {
    candidates: { metadata, pool, demotions, ...others },
    logging: { pool, demotions, metrics, log: logger },
    ...{ idleTimeoutMs: 1_000, hedgeAfterMs, prefetchWaitMs: 1_000 },
  };
  const attempts = new NarAttempts(deps, { nar: narOf("a"), target, requestId: "test" });
  return { attempts, log };
}

Deno.test("attempts: a wrong file that no client has begun starts over with the next", async () => {
  const target = new TestTarget((upstream) => {
    if (upstream === UPSTREAMS[0]) throw WRONG;
  });
  const { attempts } = attemptsFor(target);
  const result = await attempts.run();
  assert.deepEqual([result.type, result.upstream], ["whole", UPSTREAMS[1]]);
  assert.deepEqual([target.asked, target.startedOver], [[...UPSTREAMS], 1]);
});

Deno.test("attempts: a wrong file that a client has begun to read is the end", async () => {
  const target = new TestTarget(() => {
    throw WRONG;
  });
  target.isPromised = true;
  const { attempts } = attemptsFor(target);
  const result = await attempts.run();
  assert.ok(result.type === "failed" && result.error === WRONG);
  assert.deepEqual([target.asked, target.startedOver], [[UPSTREAMS[0]], 0]);
});

Deno.test("attempts: a fault found during the check names its upstream", async () => {
  const target = new TestTarget(() => attempts.wrong(WRONG));
  const { attempts, log } = attemptsFor(target);
  await attempts.run();
  assert.deepEqual(log.map(({ upstream, from }) => [upstream, from]), [[
    UPSTREAMS[0],
    UPSTREAMS[0],
  ]]);
});

Deno.test("attempts: one that ends behind the file's end has no check of its own", async () => {
  const late = Promise.withResolvers<void>();
  let checks = 0;
  class HedgedTarget extends TestTarget {
    override async from(source: { readonly upstream: string }, taken: () => void) {
      if (source.upstream !== UPSTREAMS[0]) return await super.from(source, taken);
      await late.promise;
      return END;
    }
  }
  const { attempts } = attemptsFor(new HedgedTarget(() => void checks++), 1);
  const result = await attempts.run();
  late.resolve();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([result.type, result.upstream, checks], ["whole", UPSTREAMS[1], 1]);
});

const OTHER_SIZE: FetchOutcome = { type: "failed", reason: "size", detail: "it announces 9 bytes" };

/** A target whose sources all have another size than the narinfo says. */
class OtherSizeTarget extends TestTarget {
  override async from(source: { readonly upstream: string }, taken: () => void) {
    if (this.isSizeDoubted) return await super.from(source, taken);
    this.asked.push(source.upstream);
    return OTHER_SIZE;
  }
}

Deno.test("attempts: where each source has another size, the hash decides, not the size", async () => {
  const target = new OtherSizeTarget((upstream) => {
    if (upstream === UPSTREAMS[0]) throw WRONG;
  });
  const { attempts } = attemptsFor(target);
  const result = await attempts.run();
  assert.deepEqual([result.type, result.upstream], ["whole", UPSTREAMS[1]]);
  assert.deepEqual(target.asked, [...UPSTREAMS, ...UPSTREAMS]);
});

Deno.test("attempts: a source of the narinfo's size comes before doubts about the size", async () => {
  class SecondTarget extends OtherSizeTarget {
    override async from(source: { readonly upstream: string }, taken: () => void) {
      if (source.upstream !== UPSTREAMS[1]) return await super.from(source, taken);
      return await TestTarget.prototype.from.call(this, source, taken);
    }
  }
  const target = new SecondTarget(() => undefined);
  const { attempts } = attemptsFor(target);
  const result = await attempts.run();
  assert.deepEqual([result.upstream, target.isSizeDoubted], [UPSTREAMS[1], false]);
  assert.deepEqual(target.asked, UPSTREAMS);
});

Deno.test("attempts: sizes are doubted once, and not for a client that has begun", async () => {
  class WrongTarget extends TestTarget {
    override async from({ upstream }: { readonly upstream: string }) {
      this.asked.push(upstream);
      return await Promise.resolve(OTHER_SIZE);
    }
  }
  for (const isPromised of [false, true]) {
    const target = new WrongTarget(() => undefined);
    target.isPromised = isPromised;
    target.received = isPromised ? 5 : 0;
    const { attempts } = attemptsFor(target);
    const result = await attempts.run();
    assert.deepEqual([result.type, target.isSizeDoubted], ["failed", !isPromised]);
    assert.equal(target.asked.length, isPromised ? 2 : 4);
  }
});

for (const isPromised of [false, true]) {
  const when = isPromised ? "that a client has begun" : "that nobody has begun";
  Deno.test(`attempts: a file ${when} fails by its members, not by upstreams without it`, async () => {
    const holder = { upstream: "http://larder-2.example", location: "nar/x" };
    const members: MemberNarSources = {
      sourceOf: () => Promise.resolve(holder),
      stopped: () => Promise.resolve(),
      async *after() {
        yield { upstream: OWN_COPY_URL, location: "nar/x" };
      },
    };
    class MembersTarget extends TestTarget {
      override async from({ upstream }: { readonly upstream: string }): Promise<FetchOutcome> {
        this.asked.push(upstream);
        await Promise.resolve();
        if (UPSTREAMS.some((one) => one === upstream)) {
          return { type: "failed", reason: "status", status: 500, detail: "HTTP status 500" };
        }
        return { type: "failed", reason: "upstream", detail: "the storage does not answer" };
      }
    }
    const target = new MembersTarget(() => undefined);
    target.isPromised = isPromised;
    const away = attemptsFor(target, 1_000, { known: [], level: "warn", members });
    const { type, reason } = await away.attempts.run() as { type: string; reason: string };
    assert.deepEqual([type, reason], ["failed", "absent"]);
    assert.ok(target.asked.includes(OWN_COPY_URL));
    assert.deepEqual(away.log, []);

    // An upstream that fails, too, is the one to check, whoever fails last.
    const failing = attemptsFor(target, 1_000, { level: "warn", members });
    await failing.attempts.run();
    const { upstream, status } = failing.log.at(-1) ?? {};
    assert.ok(UPSTREAMS.some((one) => one === upstream), `${upstream}`);
    assert.equal(status, 500);
  });
}
