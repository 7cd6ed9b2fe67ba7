import { Cron } from "croner";
import { messageOf } from "../base/failure.ts";
import type { Space } from "../lru/space.ts";
import type { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import type { SqliteMetadataStore } from "../metadata/sqlite/sqlite_metadata_store.ts";
import type { WorkFolder } from "../storage/local/work_folder.ts";
import type { Logger } from "../telemetry/logger.ts";

/** How long the files of a process that died may stand in the way. */
const SURVEY_EVERY_MS = 60 * 1_000;

/** How late a path is found that came after the pin that protects it; eviction looks itself. */
const REFRESH_EVERY_MS = 5_000;

/** How old what another process has changed may look here. */
const LOOK_FOR_CHANGES_EVERY_MS = 1_000;

export interface ChoresDeps {
  readonly workFolder: Pick<WorkFolder, "survey">;
  readonly space: Pick<Space, "refresh" | "tidy">;
  /** When to evict beforehand; `undefined` is never. */
  readonly schedule: { readonly cron: string; readonly timezone: string } | undefined;
  readonly metadata: SqliteMetadataStore;
  readonly hotMetadata: HotMetadataStore;
  readonly log: Logger;
}

/** What is done now and then beside the requests, until the result is disposed of. */
export function startChores(deps: ChoresDeps): Disposable {
  const { workFolder, space, schedule, metadata, hotMetadata, log } = deps;
  const refresh = () => void space.refresh();
  const survey = () => {
    workFolder.survey();
    refresh();
  };
  const changes = () => {
    try {
      if (!metadata.changedByOthers()) return;
      hotMetadata.forgetAll();
      refresh();
    } catch (error) {
      // The next look will tell; what is in memory may be old until then.
      log.warn("database not looked at", { error: messageOf(error) });
    }
  };
  changes();
  refresh();
  const timers = [
    setInterval(survey, SURVEY_EVERY_MS),
    setInterval(refresh, REFRESH_EVERY_MS),
    setInterval(changes, LOOK_FOR_CHANGES_EVERY_MS),
  ];
  const job = schedule && new Cron(schedule.cron, { timezone: schedule.timezone }, () => {
    log.info("eviction is due", schedule);
    space.tidy();
  });
  return {
    [Symbol.dispose]() {
      timers.forEach(clearInterval);
      job?.stop();
    },
  };
}
