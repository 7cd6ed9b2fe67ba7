import { Cron } from "croner";
import { LOCAL_TIME, type Schedule } from "../config/kinds/schedule.ts";
import { clock } from "../runtime/current.ts";

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
    const timer = clock.every(schedule.everyMs, work);
    return { [Symbol.dispose]: () => timer.cancel() };
  }
  const zone = timezone === LOCAL_TIME ? {} : { timezone };
  const job = new Cron(schedule.cron, zone, work);
  return { [Symbol.dispose]: () => job.stop() };
}
