import type { Stats } from "../../src/http/stats/stats.ts";

/** The figures of an answer. */
export async function readStats(answer: Response): Promise<Stats> {
  return await answer.json();
}
