import type { Stats } from "../../src/http/stats/stats.ts";

/** The figures of an answer, without their former names. */
export async function readStats(answer: Response): Promise<Stats> {
  return JSON.parse(await answer.text(), (_, value) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    const fields = Object.entries(value).filter(([name]) => !/[A-Z]|^remedy$/.test(name));
    return Object.fromEntries(fields);
  });
}
