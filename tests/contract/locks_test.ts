import { LocalLocks } from "../../src/locks/local/local_locks.ts";
import { openRedisLocks } from "../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { checkContract, type Harness } from "./contract.ts";
import { locksClauses, type LocksScene } from "./locks_contract.ts";

const holder = { member: "host.1.member" };

/** One server for all clauses: each has keys of its own. */
let server: RedisServer | undefined;

Deno.test.beforeAll(async () => {
  if (redisMissing === "") server = await RedisServer.open();
});
Deno.test.afterAll(() => server?.[Symbol.asyncDispose]());

const harnesses: readonly Harness<LocksScene>[] = [
  {
    name: "LocalLocks",
    open: () => {
      const locks = new LocalLocks(holder);
      return Promise.resolve({
        ...{ one: locks, other: locks, holder },
        [Symbol.asyncDispose]: () => locks[Symbol.asyncDispose](),
      });
    },
  },
  {
    name: "RedisLocks",
    unavailable: redisMissing,
    open: async () => {
      const address = server?.address ?? "";
      const opened = new AsyncDisposableStack();
      const keyPrefix = `${crypto.randomUUID()}:`;
      const one = opened.use(await openRedisLocks(address, { keyPrefix, holder }));
      const other = opened.use(await openRedisLocks(address, { keyPrefix }));
      return { one, other, holder, [Symbol.asyncDispose]: () => opened.disposeAsync() };
    },
  },
];

for (const harness of harnesses) checkContract(harness, locksClauses);
