import { Cron } from "croner";
import { LOCAL_TIME, type Schedule } from "../config/kinds/schedule.ts";

/** A schedule and its time zone. */
export interface ScheduledTimes {
  readonly schedule: Schedule;
  readonly timezone: string;
}

/** Calls `work` at the times of a schedule, until disposed of. */
export function startSchedule(
  { schedule, timezone }: ScheduledTimes,
  work: () => void,
): Disposable {
  if (schedule.kind === "every") {
    const timer = setInterval(work, schedule.everyMs);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }
  const zone = timezone === LOCAL_TIME ? {} : { timezone };
  const job = new Cron(schedule.cron, zone, work);
  return { [Symbol.dispose]: () => job.stop() };
}
