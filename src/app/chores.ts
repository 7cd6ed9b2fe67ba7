import { messageOf } from "../base/failure.ts";
import { schedule as scheduleKind } from "../config/kinds/schedule.ts";
import type { Space } from "../space/space.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type FreeSpaceDeps, sampleFreeSpace } from "./free_space.ts";
import { type ScheduledTimes, startSchedule } from "./schedule.ts";
import type { Stores } from "./stores.ts";

/** How long the files of a process that died may stand in the way. */
const SURVEY_EVERY_MS = 60 * 1_000;

/** How late a path is found that came after the pin that protects it; eviction looks itself. */
const REFRESH_EVERY_MS = 5_000;

/** How old what another process has changed may look here. */
const LOOK_FOR_CHANGES_EVERY_MS = 1_000;

export interface ChoresDeps {
  readonly stores: Pick<Stores, "workFolder" | "settle" | "database" | "metadata">;
  readonly space: Pick<Space, "refresh" | "tidy">;
  /** When to evict beforehand; `undefined` is never. */
  readonly schedule: ScheduledTimes | undefined;
  readonly storage: string;
  readonly metrics: FreeSpaceDeps["metrics"];
  readonly log: Logger;
}

/** What is done now and then beside the requests, until the result is disposed of. */
export function startChores(deps: ChoresDeps): Disposable {
  const { stores, space, schedule, log } = deps;
  const { workFolder, database, metadata } = stores;
  const refresh = () => void space.refresh();
  const survey = async () => {
    workFolder.survey();
    try {
      await stores.settle();
    } catch (error) {
      log.warn("files on their way not looked at", { error: messageOf(error) });
    }
    refresh();
  };
  const changes = () => {
    try {
      if (!database.changedByOthers()) return;
      metadata.forgetAll();
      refresh();
    } catch (error) {
      // The next look will tell; what is in memory may be old until then.
      log.warn("database not looked at", { error: messageOf(error) });
    }
  };
  changes();
  refresh();
  const freeSpace = sampleFreeSpace({ ...deps, path: deps.storage });
  const timers = [
    setInterval(survey, SURVEY_EVERY_MS),
    setInterval(refresh, REFRESH_EVERY_MS),
    setInterval(changes, LOOK_FOR_CHANGES_EVERY_MS),
  ];
  const job = schedule && startSchedule(schedule, () => {
    log.info("eviction is due", { schedule: scheduleKind.print(schedule.schedule) });
    space.tidy();
  });
  return {
    [Symbol.dispose]() {
      timers.forEach(clearInterval);
      job?.[Symbol.dispose]();
      freeSpace[Symbol.dispose]();
    },
  };
}
