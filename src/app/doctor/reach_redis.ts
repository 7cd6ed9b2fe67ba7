import { messageOf } from "../../base/failure.ts";
import type { Settings } from "../../config/options.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { redisOf } from "../open_leases.ts";

/** Asks Redis for an answer. Returns why there is none; writes nothing. */
export async function redisProblem(settings: Settings): Promise<string | undefined> {
  // Loaded here alone: only some settings have a Redis.
  const { redisAnswer, connectRedis } = await import("../../locks/redis/redis_client.ts");
  let refusal: string | undefined;
  // The client gives the reason for a missing connection to the log alone.
  const log = createLogger("debug", { write: (line) => void (refusal = errorIn(line) ?? refusal) });
  const { client } = await connectRedis(await redisOf(settings), log);
  try {
    await redisAnswer(client.ping());
    return undefined;
  } catch (error) {
    return refusal ?? messageOf(error);
  } finally {
    client.disconnect();
  }
}

function errorIn(line: string): string | undefined {
  const { error } = JSON.parse(line);
  return typeof error === "string" && error !== "" ? error : undefined;
}
