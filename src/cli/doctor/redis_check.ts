import { redisProblem } from "../../app/doctor/reach_redis.ts";
import type { Settings } from "../../config/options.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** The finding on Redis; none where the settings have none. */
export async function checkRedis(settings: Settings): Promise<readonly Finding[]> {
  if (settings["cache.redis-addrs"].length === 0) return [];
  const { ok, failed } = findingsOn("redis");
  const problem = await redisProblem(settings);
  if (problem === undefined) return [ok("answers")];
  return [failed(problem, "check --cache-redis-addrs, its user and password, and the firewall")];
}
