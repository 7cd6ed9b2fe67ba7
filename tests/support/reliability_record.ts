/** A client's view of the response to its request. */
export const SIGHTS = {
  whole: "the right NAR, whole",
  rest: "206 with the right rest",
  absent: "404",
  cut: "a transfer that broke off",
  /** The first to come decides: the answer's head, or the bad news. */
  refused: "404, or a transfer that broke off",
  "whole-or-cut": "the right NAR, whole, or a transfer that broke off",
  stored: "201 or 200: stored",
  later: "507 before the body, and Nix sends it again",
  full: "507, and the connection closes",
  timeout: "408, and the connection closes",
  left: "nothing more, it has left",
} as const;

/** The state of the storage afterwards, by its files and its rows. */
export const KEEPINGS = {
  nothing: "nothing",
  narinfo: "the narinfo",
  nar: "narinfo and NAR",
  staged: "the NAR, for an hour",
  /** Files and rows do not agree. */
  damaged: "its row, until the file is fetched again",
  "whole-or-nothing": "narinfo and NAR, or the narinfo",
} as const;

export type Sight = keyof typeof SIGHTS;
export type Keeping = keyof typeof KEEPINGS;

/** A fault and its outcome: a row of the table of faults. */
export interface ReliabilityRecord {
  readonly area: "upstream" | "client" | "upload" | "machine" | "members";
  readonly fault: string;
  readonly saw: Sight;
  /** It was seen in less than this. */
  readonly withinMs?: number | undefined;
  /** It was seen at this moment, exactly. */
  readonly afterMs?: number | undefined;
  readonly kept: Keeping;
}

/** Names the file that a test run writes its records to, one JSON line each. */
export const RECORDS_VARIABLE = "RELIABILITY_RECORDS";

/** Adds the observation of a test to the records of the run, if it keeps any. */
export function record(observed: ReliabilityRecord): void {
  const path = Deno.env.get(RECORDS_VARIABLE);
  if (path === undefined) return;
  Deno.writeTextFileSync(path, `${JSON.stringify(observed)}\n`, { append: true });
}
