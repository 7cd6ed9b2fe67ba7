import assert from "node:assert/strict";
import {
  type MemberBoard,
  REPORT_KEPT_MS,
  REPORTS_MAX,
  STATUS_BYTES_MAX,
} from "../../src/metadata/member_board.ts";
import type { Clauses } from "./contract.ts";

/** The board of one database, as two members have it open, and its clock. */
export interface BoardScene {
  readonly one: MemberBoard;
  readonly other: MemberBoard;
  /** Moves the clock; back by a negative time. */
  elapse(ms: number): void;
}

/** The promises of a board to all members that share the database. */
export const memberBoardClauses: Clauses<BoardScene> = {
  "report() shows the latest report of each, its own first, with their silence": async (scene) => {
    const { one, other, elapse } = scene;
    await one.report("a", "first");
    elapse(1_000);
    await one.report("a", "'second' \u{1F4E6}");
    elapse(2_000);
    assert.deepEqual(await other.report("b", "here"), [
      { id: "b", status: "here", silentMs: 0 },
      { id: "a", status: "'second' \u{1F4E6}", silentMs: 2_000 },
    ]);
  },

  "withdraw() removes a report, and no other": async ({ one, other }) => {
    await one.report("a", "x");
    await other.report("b", "y");
    await one.withdraw("a");
    assert.deepEqual(await other.report("b", "z"), [{ id: "b", status: "z", silentMs: 0 }]);
    await one.withdraw("a");
  },

  "sharedNowMs() is one clock for all": async ({ one, other, elapse }) => {
    const beforeMs = await one.sharedNowMs();
    elapse(7_000);
    assert.equal(await other.sharedNowMs(), beforeMs + 7_000);
  },

  "the report of a dead member stays a while, then goes": async ({ one, other, elapse }) => {
    await one.report("dead", "x");
    elapse(REPORT_KEPT_MS);
    assert.deepEqual((await other.report("b", "y")).map(({ silentMs }) => silentMs), [
      ...[0, REPORT_KEPT_MS],
    ]);
    elapse(1);
    assert.deepEqual((await other.report("b", "y")).map(({ id }) => id), ["b"]);
  },

  "a report from before the clock was set back grows old from then on": async (scene) => {
    await scene.one.report("a", "x");
    scene.elapse(-60_000);
    const [, a] = await scene.other.report("b", "y");
    assert.equal(a?.silentMs, 0);
    scene.elapse(5_000);
    const [, later] = await scene.other.report("b", "y");
    assert.equal(later?.silentMs, 5_000);
  },

  "a status that is too long is refused, and the former one stays": async ({ one, other }) => {
    const longest = "x".repeat(STATUS_BYTES_MAX);
    await one.report("a", longest);
    await assert.rejects(one.report("a", `${longest}x`), { name: "Failure" });
    const [, a] = await other.report("b", "y");
    assert.equal(a?.status, longest);
  },

  "of very many members the newest are listed": async ({ one, elapse }) => {
    for (let number = 0; number <= REPORTS_MAX; number++) {
      elapse(1);
      await one.report(`member-${String(number).padStart(3, "0")}`, "x");
    }
    const reports = await one.report("member-010", "y");
    assert.equal(reports.length, REPORTS_MAX);
    assert.deepEqual(reports.slice(0, 2).map(({ id }) => id), [
      "member-010",
      `member-0${REPORTS_MAX}`,
    ]);
  },
};
