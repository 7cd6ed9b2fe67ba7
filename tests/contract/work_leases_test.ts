import { type LeaseMember, LeaseMetrics, Leases } from "../../src/locks/leases.ts";
import { LocalLocks } from "../../src/locks/local/local_locks.ts";
import { type Locks, LocksUnavailable } from "../../src/locks/locks.ts";
import { MemberLeases, NO_OTHER_MEMBERS, type WorkLeases } from "../../src/locks/work_leases.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import { openRedisLocks } from "../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { checkContract, type Harness } from "./contract.ts";
import {
  loneLeasesClauses,
  workLeasesClauses,
  type WorkLeasesScene,
} from "./work_leases_contract.ts";

const ONE = { member: "host.1.one", url: "http://127.0.0.1:8501" } as const;
const OTHER = { member: "host.2.other" } as const;

/** One server for all clauses: each has keys of its own. */
let server: RedisServer | undefined;

Deno.test.beforeAll(async () => {
  if (redisMissing === "") server = await RedisServer.open();
});
Deno.test.afterAll(() => server?.[Symbol.asyncDispose]());

interface MemberParts {
  readonly self: LeaseMember;
  readonly locks: Locks;
  readonly ownLocks?: Locks;
  /** The rows of the members; default: both. */
  readonly rows?: () => readonly LeaseMember[];
}

function leasesOf({ self, locks, ownLocks, rows = () => [ONE, OTHER] }: MemberParts): WorkLeases {
  const leases = new Leases({
    ...{ locks, ownLocks, self },
    members: { find: async (id) => rows().find(({ member }) => member === id) },
    metrics: new LeaseMetrics(new Metrics()),
    tracer: NO_TRACER,
    log: SILENT,
  });
  const retryPolicy = { retriesMax: 1, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false };
  return new MemberLeases({ leases, downloadTtlMs: 60_000, lruTtlMs: 60_000, retryPolicy });
}

/** Locks that do not answer. */
const AWAY: Locks = {
  tryAcquire: () => Promise.reject(away()),
  holderOf: () => Promise.reject(away()),
  free: () => Promise.reject(away()),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

function away(): LocksUnavailable {
  return new LocksUnavailable("circuit_breaker", "Cannot reach Redis: it is away");
}

const lone: Readonly<Record<string, () => WorkLeases>> = {
  NO_OTHER_MEMBERS: () => NO_OTHER_MEMBERS,
  MemberLeases: () => leasesOf({ self: ONE, locks: new LocalLocks(ONE) }),
  "MemberLeases without an answer of the locks": () => leasesOf({ self: ONE, locks: AWAY }),
  "MemberLeases on its own locks": () =>
    leasesOf({ self: ONE, locks: AWAY, ownLocks: new LocalLocks(ONE) }),
};

for (const [name, leasesAlone] of Object.entries(lone)) {
  const open = async () => ({ leases: leasesAlone(), async [Symbol.asyncDispose]() {} });
  checkContract({ name, open }, loneLeasesClauses);
}

const shared: readonly Harness<WorkLeasesScene>[] = [
  {
    name: "MemberLeases by LocalLocks",
    open: async () => {
      const locks = new LocalLocks(ONE);
      return sceneOf(locks, locks, new AsyncDisposableStack());
    },
  },
  {
    name: "MemberLeases by RedisLocks",
    unavailable: redisMissing,
    open: async () => {
      const opened = new AsyncDisposableStack();
      const address = server?.address ?? "";
      const keyPrefix = `${crypto.randomUUID()}:`;
      const one = opened.use(await openRedisLocks(address, { keyPrefix, holder: ONE }));
      const other = opened.use(await openRedisLocks(address, { keyPrefix, holder: OTHER }));
      return sceneOf(one, other, opened);
    },
  },
];

for (const harness of shared) checkContract(harness, workLeasesClauses);

function sceneOf(one: Locks, other: Locks, opened: AsyncDisposableStack) {
  let isDead = false;
  const rows = () => isDead ? [OTHER] : [ONE, OTHER];
  return {
    one: leasesOf({ self: ONE, locks: one }),
    other: leasesOf({ self: OTHER, locks: other, rows }),
    url: ONE.url,
    die: () => void (isDead = true),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
