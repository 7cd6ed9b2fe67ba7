import assert from "node:assert/strict";
import { livingMember } from "../../../src/app/back_ends/members.ts";
import { type MemberId, newMemberId } from "../../../src/base/member_id.ts";
import type { Member } from "../../../src/metadata/space_keeper.ts";

const SELF = newMemberId("a.example", 1);
const OTHER = newMemberId("b.example", 1);

/** The other member's silence at each look; the last one stays. */
const CASES: readonly (readonly [string, readonly number[], MemberId | undefined])[] = [
  ["that writes a heartbeat lives", [4_000, 4_500, 10], OTHER],
  ["that died a moment ago does not", [29_000, 29_500, 30_000], undefined],
  ["that is long dead does not", [60_000], undefined],
  ["of a clock that was set back does not", [0], undefined],
];

for (const [member, silences, expected] of CASES) {
  Deno.test(`living member: one ${member}`, async () => {
    assert.equal(await livingMember(ledgerOf(OTHER, silences), SELF, 0), expected);
  });
}

Deno.test("living member: the process itself is none", async () => {
  assert.equal(await livingMember(ledgerOf(SELF, [4_000, 10]), SELF, 0), undefined);
});

function ledgerOf(id: MemberId, silences: readonly number[]) {
  let look = 0;
  return {
    members: async (): Promise<readonly Member[]> => {
      return [{ id, silentMs: silences[Math.min(look++, silences.length - 1)] ?? 0 }];
    },
  };
}
