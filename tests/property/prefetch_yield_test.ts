import assert from "node:assert/strict";
import fc from "fast-check";
import {
  decide,
  INITIAL_NARS,
  INITIAL_YIELD,
  NARS_PER_REQUEST,
  nextYield,
  OUTCOMES_MAX,
  OUTCOMES_MIN,
  TRIAL_EVERY,
  type YieldEvent,
} from "../../src/cache/prefetch/nar_prefetcher.ts";
import { checkProperty } from "../support/property.ts";

const news = fc.constantFrom<YieldEvent>("failed", "used", "wanted", "wasted");
/** "offered": a NAR that would be prefetched if the yield allows it. */
const story = fc.array(fc.oneof({ arbitrary: fc.constant("offered" as const), weight: 3 }, news), {
  maxLength: 600,
  size: "max",
});

function after(now: typeof INITIAL_YIELD, offered: "offered" | YieldEvent) {
  if (offered !== "offered") return { state: nextYield(now, offered), decision: undefined };
  const decision = decide(now);
  if (decision === "wait") return { state: now, decision };
  return { state: nextYield(now, decision === "fetch" ? "fetched" : "skipped"), decision };
}

checkProperty(
  "prefetch yield: each NAR that clients ask for pays for four prefetches, and fifty are free",
  fc.property(story, (events) => {
    let [state, fetched, asked] = [INITIAL_YIELD, 0, 0];
    for (const event of events) {
      const { state: next, decision } = after(state, event);
      state = next;
      if (decision === "fetch") fetched++;
      if (event === "used" || event === "wanted") asked++;
      assert.ok(fetched <= INITIAL_NARS + NARS_PER_REQUEST * asked);
      assert.ok(state.credit >= 0 && state.credit <= INITIAL_NARS);
      assert.ok(state.outcomes.length <= OUTCOMES_MAX);
    }
  }),
);

checkProperty(
  "prefetch yield: while most of the last were wasted or failed, at most one in twenty is fetched",
  fc.property(story, (events) => {
    let state = INITIAL_YIELD;
    let outcomes: boolean[] = [];
    let skipped = 0;
    for (const event of events) {
      const wasted = outcomes.filter(Boolean).length;
      const isMostlyWasted = outcomes.length >= OUTCOMES_MIN && wasted > outcomes.length / 2;
      const { state: next, decision } = after(state, event);
      state = next;
      if (decision === "fetch") {
        assert.ok(!isMostlyWasted || skipped >= TRIAL_EVERY - 1);
        skipped = 0;
      }
      if (decision === "skip") {
        assert.ok(isMostlyWasted);
        skipped++;
      }
      if (event === "used" || event === "wasted" || event === "failed") {
        outcomes = [...outcomes, event !== "used"].slice(-OUTCOMES_MAX);
      }
    }
  }),
);

checkProperty(
  "prefetch yield: whatever came before, two hundred NARs that were used bring it back",
  fc.property(story, (events) => {
    let state = events.reduce((now, event) => after(now, event).state, INITIAL_YIELD);
    for (let used = 0; used < OUTCOMES_MAX; used++) state = nextYield(state, "used");
    assert.equal(decide(state), "fetch");
  }),
);
