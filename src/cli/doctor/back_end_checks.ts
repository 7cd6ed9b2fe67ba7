import type { DatabaseState } from "../../app/doctor/read_database.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { type Finding, findingsOn } from "./finding.ts";
import { foreignDatabase, narsProblem } from "../../app/doctor/read_nars.ts";
import type { StorePlaces } from "../../app/back_ends/back_ends.ts";
import { redisProblem } from "../../app/doctor/reach_redis.ts";
import type { Settings } from "../../config/options.ts";

/** The finding on the database. */
export function checkDatabase(path: string, state: DatabaseState): readonly Finding[] {
  const { ok, warning, failed, notChecked } = findingsOn("database");
  switch (state.kind) {
    case "healthy": {
      const { keptFiles, keptBytes } = state.health.stock;
      const files = `${counted(keptFiles, "NAR file")} (${formatBytes(keptBytes)})`;
      const { bytes } = state;
      const checked = bytes === undefined ? "its sums are" : "its pages and sums are";
      const size = bytes === undefined ? "" : `${formatBytes(bytes)}, `;
      return [ok(`${size}${checked} right: ${files}`)];
    }
    case "damaged": {
      const [first, ...others] = state.health.damage;
      if (first === undefined) {
        return [failed("its sums are not those of its rows", "larder fsck --repair")];
      }
      const more = others.length > 0 ? `, and ${others.length} more` : "";
      return [failed(`${path}: ${first}${more}`, "stop larder, and restore a backup")];
    }
    case "missing":
      return [warning(`there is no ${path} yet`, "larder serve makes it at its first start")];
    case "foreign": {
      const advice = "give larder one of its own with --cache-database-url";
      return [failed(`${path} is a database of another program`, advice)];
    }
    case "older": {
      const fact = `schema version ${state.version}, this larder has ${state.known}`;
      return [warning(fact, "the next start of this larder migrates it, and keeps a backup")];
    }
    case "newer": {
      const fact = `schema version ${state.version}, this larder knows ${state.known} at most`;
      return [failed(fact, "start the newer larder, or restore the backup of the migration")];
    }
    case "unreadable":
      return [failed(
        `${path}: ${state.reason}`,
        "run this as the user of larder; if it is damaged, stop larder and restore a backup",
      )];
    case "unknown":
      return [notChecked(state.reason, "start larder and run this again, or run larder fsck")];
  }
}

/** The finding on the bucket of the NAR files; none for a local storage. */
export async function checkBucketOf({ nars }: StorePlaces): Promise<readonly Finding[]> {
  if (nars.kind === "local") return [];
  const { ok, failed } = findingsOn("bucket");
  const problem = await narsProblem(nars);
  if (problem === undefined) return [ok(`${nars.s3.bucket} can be listed`)];
  const advice = "check --cache-storage-s3-bucket, its endpoint, region and access keys";
  return [failed(`${nars.s3.bucket}: ${problem}`, advice)];
}

/** The finding on NAR files of another database; none if they are this one's. */
export async function checkOwner(
  places: StorePlaces,
  state: DatabaseState,
): Promise<readonly Finding[]> {
  const isKnown = "health" in state || state.kind === "missing";
  if (!isKnown) return [];
  const id = "health" in state ? state.health.storageId : undefined;
  // The check of the bucket reports an unreadable one.
  const owner = await foreignDatabase(places, id).catch(() => undefined);
  if (owner === undefined) return [];
  const advice = "give that one with --cache-database-url, or run larder fsck --adopt";
  return [findingsOn("nar files").failed(`they belong to another database (${owner})`, advice)];
}

/** The finding on Redis; none where the settings have none. */
export async function checkRedis(settings: Settings): Promise<readonly Finding[]> {
  if (settings["cache.redis-addrs"].length === 0) return [];
  const { ok, failed } = findingsOn("redis");
  const problem = await redisProblem(settings);
  if (problem === undefined) return [ok("answers")];
  return [failed(problem, "check --cache-redis-addrs, its user and password, and the firewall")];
}
