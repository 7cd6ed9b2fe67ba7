import { PULLS_MAX } from "../../src/metadata/history_keeper.ts";
import type { Problem } from "../../src/telemetry/recent_problems.ts";
import { type FakeUpstream, fakeUpstream } from "./fake_upstream.ts";
import { Gate } from "./faults.ts";
import { hash, put } from "./metadata_rows.ts";
import { pastMonth } from "./past_month.ts";
import { pastPull } from "./past_pull.ts";
import { makeStoreObject } from "./store_object.ts";
import { TestCache } from "./test_cache.ts";
import { reportedMembers } from "./reported_members.ts";

const UPSTREAMS = 6;
const DOWNLOADS = 10;
const PINS = 100;
const PROBLEMS = 50;

/** So many requests for absent paths fill each upstream's line of latencies. */
const ABSENT = 60;

const objects = Array.from(
  { length: DOWNLOADS },
  (_, index) => makeStoreObject({ name: `package-${index}-1.0`, size: 200_000 }),
);

/**
 * A cache whose page has all that it can have. That is a month of history, 50 problems, 10
 * downloads in flight, 6 upstreams, 100 pins, 200 pulls and three members. Resolves with the page's URL.
 */
export async function openFullPage(): Promise<AsyncDisposable & { readonly url: string }> {
  await using opening = new AsyncDisposableStack();
  const gate = new Gate();
  const upstreams: FakeUpstream[] = [];
  for (let count = 0; count < UPSTREAMS; count++) {
    const one = opening.use(await fakeUpstream({ objects, stored: true }));
    one.breakNar(gate.fault);
    upstreams.push(one);
  }
  const members = reportedMembers({ running: {}, draining: {}, gone: { silentMs: 90_000 } });
  const problems = { list: () => listOfProblems(upstreams) };
  const cache = opening.use(
    await TestCache.open({ upstreams, members, problems, idleTimeoutMs: 60_000 }),
  );
  await cache.metadata.recordHistory(pastMonth(Date.now()).rows, []);
  await cache.startHistory();
  await cache.metadata.recordPulls(
    Array.from({ length: PULLS_MAX }, (_, index) => ({ ...pastPull(Date.now()), id: `${index}` })),
  );
  const pins = Array.from({ length: PINS }, (_, index) => hash(`pin-${index}`));
  await cache.metadata.apply(pins.flatMap((storePathHash) => [
    put(storePathHash, []),
    { kind: "put-pin", pin: { storePathHash, pinnedAtMs: Date.now() } } as const,
  ]));
  for (let count = 0; count < ABSENT; count++) {
    await (await cache.get(`/${hash(`absent-${count}`)}.narinfo`)).bytes();
  }
  gate.release(90_000);
  const answers = await Promise.all(
    objects.map(async ({ storePathHash }) => await cache.get(await cache.narPath(storePathHash))),
  );
  opening.defer(async () => {
    gate.open();
    for (const answer of answers) await answer.bytes();
    await cache.downloadsOver();
  });
  await cache.reportToMembers();
  const { url } = opening.use(cache.listen());
  const opened = opening.move();
  return { url, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

function listOfProblems(upstreams: readonly FakeUpstream[]): readonly Problem[] {
  return Array.from({ length: PROBLEMS }, (_, index) => ({
    part: `way ${index}`,
    event: "nar-not-fetched",
    level: index % 5 === 0 ? "error" : "warn",
    message: `upstream failed in way ${index}`,
    facts: {
      ...{ upstream: upstreams[index % UPSTREAMS]?.url ?? "", reason: "timeout", count: index },
      hint: "check its URL and the network; larder uses it as soon as it answers",
    },
    count: 3,
    firstAtMs: Date.now() - 5_000_000,
    begunAtMs: Date.now() - 5_000_000,
    lastAtMs: Date.now() - 1_000_000,
    overAtMs: index % 2 === 0 ? undefined : Date.now(),
  }));
}
