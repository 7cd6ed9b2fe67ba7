// Holds a lock in Redis until it is killed. Arguments: address, name, time to live.
import { openRedisLocks } from "./redis_locks.ts";

const [address = "", name = "", ttlMs = ""] = Deno.args;
const locks = await openRedisLocks(address);
const lease = await locks.tryAcquire(name, Number(ttlMs));
console.log(lease === undefined ? "refused" : "held");
