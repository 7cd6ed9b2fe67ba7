import assert from "node:assert/strict";
import fc from "fast-check";
import { type FailedTry, SourceFailures } from "../../src/cache/sources/source_failures.ts";
import { checkProperty } from "../support/property.ts";

const IDLE_TIMEOUT_MS = 30_000;
const PROGRESS_BYTES = 64 * 1024;
/** A request that fails with an error takes no longer here. */
const ANSWER_MAX_MS = 400;

type Try = Omit<FailedTry, "atMs"> & { readonly tookMs: number };

/** The results of the tries at one source, one after the other; the last one again and again. */
type Behaviour = readonly [Try, ...Try[]];

const tookMs = fc.integer({ min: 0, max: ANSWER_MAX_MS });
const requests = fc.constant(1);
const barren = fc.record({
  failureClass: fc.constant("error" as const),
  addedBytes: fc.constant(0),
});
const error = fc.record({
  failureClass: fc.constant("error" as const),
  addedBytes: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 * PROGRESS_BYTES })),
});
const other = fc.record({
  failureClass: fc.constantFrom("timeout" as const, "wrong file" as const),
  addedBytes: fc.integer({ min: 0, max: 2 * PROGRESS_BYTES }),
});

const triesOf = (one: fc.Arbitrary<Pick<Try, "failureClass" | "addedBytes">>): fc.Arbitrary<Try> =>
  fc.tuple(one, requests, tookMs).map(([what, requests, tookMs]) => ({
    ...what,
    requests,
    tookMs,
  }));

/** Any tries first, and then nothing but errors. */
const endsInErrors = fc.tuple(fc.array(triesOf(fc.oneof(error, other))), triesOf(barren))
  .map(([first, last]): Behaviour => [...first, last] as unknown as Behaviour);

interface Transfer {
  readonly tries: readonly (Try & { readonly source: string; readonly atMs: number })[];
  readonly overAtMs: number;
}

/** Asks sources by the rule until it gives them up. */
function transfer(behaviours: readonly Behaviour[], hasBegun = true): Transfer {
  const failures = new SourceFailures(IDLE_TIMEOUT_MS, 0);
  if (hasBegun) failures.begin();
  const tries: (Try & { source: string; atMs: number })[] = [];
  let nowMs = 0;
  const ask = (source: string, behaviour: Behaviour): boolean => {
    const count = tries.filter((one) => one.source === source).length;
    const one = behaviour[Math.min(count, behaviour.length - 1)] ?? behaviour[0];
    nowMs += one.failureClass === "timeout" ? 3_000 : one.tookMs;
    tries.push({ ...one, source, atMs: nowMs });
    assert.ok(tries.length < 10_000, "it never ends");
    return failures.failed(source, { ...one, atMs: nowMs });
  };
  for (;;) {
    for (const [index, behaviour] of behaviours.entries()) {
      const source = `upstream ${index}`;
      while (failures.mayAsk(source) && ask(source, behaviour));
    }
    const pauseMs = failures.pauseMs(nowMs);
    if (pauseMs === undefined) return { tries, overAtMs: nowMs };
    nowMs += pauseMs;
  }
}

const isProgress = ({ addedBytes }: Try) => addedBytes >= PROGRESS_BYTES;

checkProperty(
  "give up: sources with nothing but errors get 11 requests and 6 seconds at most",
  fc.property(fc.array(triesOf(barren), { minLength: 1, maxLength: 9 }), (failures) => {
    const { tries, overAtMs } = transfer(failures.map((failure): Behaviour => [failure]));
    assert.ok(tries.length <= 11, `${tries.length} requests`);
    assert.ok(overAtMs <= 6_000, `${overAtMs} ms`);
  }),
);

checkProperty(
  "give up: after the last progress come 11 requests with errors at most, from all sources",
  fc.property(fc.array(endsInErrors, { minLength: 1, maxLength: 5 }), (behaviours) => {
    const { tries } = transfer(behaviours);
    const since = tries.slice(tries.findLastIndex(isProgress) + 1);
    assert.ok(since.filter(({ failureClass }) => failureClass === "error").length <= 11);
  }),
);

checkProperty(
  "give up: no source has a fourth error in a row without a byte in between",
  fc.property(fc.array(endsInErrors, { minLength: 1, maxLength: 5 }), (behaviours) => {
    const errorsInARow = new Map<string, number>();
    for (const { source, failureClass, addedBytes } of transfer(behaviours).tries) {
      const before = errorsInARow.get(source) ?? 0;
      assert.ok(before < 3, source);
      if (addedBytes > 0) errorsInARow.set(source, 0);
      else if (failureClass === "error") errorsInARow.set(source, before + 1);
    }
  }),
);

checkProperty(
  "give up: a source without the right file gets no further request",
  fc.property(fc.array(endsInErrors, { minLength: 1, maxLength: 5 }), (behaviours) => {
    const refused = new Set<string>();
    for (const { source, failureClass } of transfer(behaviours).tries) {
      assert.ok(!refused.has(source));
      if (failureClass === "wrong file") refused.add(source);
    }
  }),
);

checkProperty(
  "give up: a source that adds to the file each time gets requests to the end",
  fc.property(
    fc.array(fc.integer({ min: PROGRESS_BYTES, max: 2 * PROGRESS_BYTES }), {
      minLength: 1,
      maxLength: 50,
    }),
    (pieces) => {
      const tries = pieces.map((addedBytes) => ({
        failureClass: "error" as const,
        addedBytes,
        requests: 1,
        tookMs: 100,
      }));
      const last = { failureClass: "wrong file" as const, addedBytes: 0, requests: 1, tookMs: 0 };
      const { length } = transfer([[...tries, last] as unknown as Behaviour]).tries;
      assert.equal(length, pieces.length + 1);
    },
  ),
);

checkProperty(
  "give up: a source that times out gets no second request at once, and few bytes end it",
  fc.property(
    fc.array(fc.integer({ min: 0, max: PROGRESS_BYTES - 1 }), { minLength: 1 }),
    (adds) => {
      const failures = new SourceFailures(IDLE_TIMEOUT_MS, 0);
      let [nowMs, asked] = [0, 0];
      for (const addedBytes of adds) {
        nowMs += IDLE_TIMEOUT_MS;
        asked++;
        const tried = { failureClass: "timeout", addedBytes, requests: 1, atMs: nowMs } as const;
        assert.equal(failures.failed("stalled", tried), false);
        const pauseMs = failures.pauseMs(nowMs);
        if (pauseMs === undefined) break;
        nowMs += pauseMs;
      }
      assert.ok(asked <= 2, `${asked} requests`);
    },
  ),
);

Deno.test("give up: a source that times out is retried up to the idle timeout", () => {
  const timeout = { failureClass: "timeout", addedBytes: 0, requests: 1, tookMs: 0 } as const;
  const { overAtMs } = transfer([[timeout]]);
  assert.ok(overAtMs > IDLE_TIMEOUT_MS - 6_000 && overAtMs <= IDLE_TIMEOUT_MS + 3_000);
});

Deno.test("give up: a source that adds a few bytes each time leaves requests to the others", () => {
  const few = { failureClass: "error", addedBytes: 100, requests: 1, tookMs: 10 } as const;
  const whole = { failureClass: "wrong file", addedBytes: 0, requests: 1, tookMs: 0 } as const;
  const { tries } = transfer([[few], [whole]]);
  const sources = tries.slice(0, 4).map(({ source }) => source);
  assert.deepEqual(sources, ["upstream 0", "upstream 0", "upstream 0", "upstream 1"]);
});

Deno.test("give up: before the first byte each source gets one request", () => {
  const failure = { failureClass: "error", addedBytes: 0, requests: 1, tookMs: 0 } as const;
  const timeout = { ...failure, failureClass: "timeout" } as const;
  const { tries } = transfer([[failure], [timeout], [failure]], false);
  assert.deepEqual(tries.map(({ source }) => source), ["upstream 0", "upstream 1", "upstream 2"]);
});

Deno.test("give up: requests before the first byte leave fewer after it", () => {
  const failures = new SourceFailures(IDLE_TIMEOUT_MS, 0);
  const barren = { failureClass: "error", addedBytes: 0, atMs: 0 } as const;
  failures.failed("busy", { ...barren, requests: 3 });
  assert.equal(failures.mayAsk("busy"), false);
  failures.failed("other", { ...barren, requests: 1, addedBytes: PROGRESS_BYTES });
  assert.equal(failures.mayAsk("busy"), false);
  assert.equal(failures.mayAsk("other"), true);
});
