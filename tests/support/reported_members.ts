import type { MemberParts } from "../../src/app/app_parts.ts";
import { formatStatus, type MemberStatus } from "../../src/http/stats/member_status.ts";
import { MemoryMemberBoard } from "./memory_member_board.ts";

/** A member with a value in each field. */
export const REPORTED: MemberStatus = {
  host: "larder-2",
  version: "0.1.0",
  url: "http://larder-2.example:8501",
  started_at: "2026-01-02T03:04:05.678Z",
  is_draining: false,
  requests_per_second: 12.5,
  hit_ratio: 0.75,
  upstreams: { up: 2, down: 1 },
  problems: 3,
  downloads: {
    count: 7,
    under_way: [{ nar: "x.nar.xz", name: "big-1.0", received_bytes: 1_000, file_bytes: 4_000 }],
  },
};

/** A member with another text than a status, or with another status. */
export interface ReportedMember {
  readonly text?: string;
  readonly status?: Partial<MemberStatus>;
  readonly silentMs?: number;
}

/** Members beside the one under test, as a board shows them. */
export function reportedMembers(
  others: Readonly<Record<string, ReportedMember>>,
  more: Partial<MemberParts> = {},
): MemberParts {
  const nowMs = Date.now();
  const reports = Object.entries(others).map(([id, { text, status = {}, silentMs = 0 }]) => (
    [id, {
      status: text ?? formatStatus({ ...REPORTED, ...status }),
      atMs: nowMs - silentMs,
    }] as const
  ));
  // No time passes: each stays as silent as it is.
  const board = new MemoryMemberBoard(() => nowMs, reports);
  return { board, host: "larder-1", url: undefined, isShared: false, ...more };
}
