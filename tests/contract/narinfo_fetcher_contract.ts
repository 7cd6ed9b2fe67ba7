import assert from "node:assert/strict";
import type { SecretKey } from "../../src/nix/signature.ts";
import { signNarinfo } from "../../src/nix/sign_narinfo.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import type { NarinfoWatch } from "../../src/upstream/http/narinfo_fetcher.ts";
import type { NarinfoReading } from "../../src/upstream/upstream.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, firstTimes, heldUntil, status } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Clauses } from "./contract.ts";

/** One request for a narinfo. */
export interface NarinfoRequest extends Partial<NarinfoWatch> {
  readonly storePathHash: StorePathHash;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isFinal?: boolean;
}

export type Fetch = (request: NarinfoRequest) => Promise<NarinfoReading>;

export interface NarinfosScene {
  /** It has OBJECTS, and signs them. */
  readonly upstream: FakeUpstream;
  /** Signs what a trusted key signed. */
  readonly secretKey: SecretKey;
  /** A fetcher for the upstream, which trusts its key. */
  open(requiresSignature: boolean): Promise<Fetch>;
}

export const OBJECTS = ["thing-1.0", "other-1.0"].map((name) => makeStoreObject({ name }));
const [THING, OTHER] = OBJECTS.map(({ storePathHash }) => storePathHash) as [
  StorePathHash,
  StorePathHash,
];
const ABSENT = makeStoreObject({ name: "absent-1.0" }).storePathHash;

export const narinfoFetcherClauses: Clauses<NarinfosScene> = {
  "a narinfo of a trusted key is found, and signed": async ({ open, secretKey }) => {
    const fetch = await open(true);
    const reading = await fetch({ storePathHash: THING });
    assert.ok(reading.kind === "found");
    assert.equal(reading.narinfo.storePathHash, THING);
    assert.equal(reading.trusted, true);
    assert.deepEqual(reading.ownSignature, signNarinfo(secretKey, reading.narinfo));
  },

  "a narinfo of another key is refused, or stays without a signature": async (scene) => {
    await using stranger = await fakeUpstream({ objects: OBJECTS, stored: true });
    const text = await stranger.narinfoOf(objectOf(THING));
    scene.upstream.onRequest = () => new Response(text);
    const refused = await (await scene.open(true))({ storePathHash: THING });
    assert.deepEqual(kindOf(refused), ["failed", "untrusted"]);
    const found = await (await scene.open(false))({ storePathHash: THING });
    assert.ok(found.kind === "found");
    assert.deepEqual([found.trusted, found.ownSignature], [false, undefined]);
  },

  "a 404 is an absence, and its status is reported": async ({ open }) => {
    const fetch = await open(true);
    const statuses: number[] = [];
    const answered = (given: number) => void statuses.push(given);
    assert.deepEqual(await fetch({ storePathHash: ABSENT, answered }), { kind: "absent" });
    assert.deepEqual(statuses, [404]);
  },

  "another status, or another text than the narinfo's, is a failure": async (scene) => {
    const fetch = await scene.open(true);
    scene.upstream.breakNarinfo(status(500));
    const { detail: _, ...refusal } = await failure(fetch({ storePathHash: THING, isFinal: true }));
    assert.deepEqual(refusal, { kind: "failed", reason: "status", status: 500 });
    const other = await scene.upstream.narinfoOf(objectOf(OTHER));
    for (const text of ["no narinfo", other]) {
      scene.upstream.onRequest = () => new Response(text);
      assert.deepEqual(kindOf(await fetch({ storePathHash: THING })), ["failed", "garbage"]);
    }
  },

  "a connection that is refused or breaks is a failure": async ({ open, upstream }) => {
    const fetch = await open(true);
    const reading = () => fetch({ storePathHash: THING, isFinal: true });
    upstream.breakNarinfo(cutAfter(20));
    assert.deepEqual(kindOf(await reading()), ["failed", "unreachable"]);
    await upstream.stop();
    assert.deepEqual(kindOf(await reading()), ["failed", "unreachable"]);
  },

  "its requests have credentials and headers": async ({ open, upstream }) => {
    const fetch = await open(true);
    await fetch({ storePathHash: THING, headers: { traceparent: "00-trace" } });
    const headers = upstream.matching(pathOf(THING)).at(-1)?.headers;
    const names = ["authorization", "user-agent", "accept-encoding", "traceparent"];
    assert.deepEqual(
      names.map((name) => headers?.get(name)),
      ["Basic s3cret", "larder-test", "identity", "00-trace"],
    );
  },

  "a refusal for load is reported each time, and tried again": async ({ open, upstream }) => {
    const fetch = await open(true);
    upstream.breakNarinfo(firstTimes(2, status(503)));
    const reports: (number | string)[] = [];
    const reading = await fetch({
      storePathHash: THING,
      busy: () => void reports.push("busy"),
      answered: (given) => void reports.push(given),
    });
    assert.equal(reading.kind, "found");
    assert.deepEqual(reports, ["busy", "busy", 200]);
  },

  "a final request is not tried again": async ({ open, upstream }) => {
    const fetch = await open(true);
    upstream.breakNarinfo(status(503));
    const count = upstream.count(pathOf(THING));
    let isBusy = false;
    const busy = () => void (isBusy = true);
    const reading = await fetch({ storePathHash: THING, isFinal: true, busy });
    assert.deepEqual(kindOf(reading), ["failed", "status"]);
    assert.equal(upstream.count(pathOf(THING)), count + 1);
    assert.ok(isBusy);
  },

  "a signal settles at once with its reason, and ends the request": async (scene) => {
    const { open, upstream } = scene;
    const fetch = await open(true);
    const never = Promise.withResolvers<void>();
    upstream.breakNarinfo(heldUntil(never.promise));
    const count = upstream.count(pathOf(THING));
    const abort = new AbortController();
    const reading = fetch({ storePathHash: THING, signal: abort.signal });
    const request = await upstream.requested(pathOf(THING), count + 1);
    abort.abort(new Error("nobody waits"));
    assert.deepEqual(await reading, NOBODY_WAITS);
    await eventually("the connection is closed", () => upstream.openConnections === 0);
    never.resolve();
    await request.finished;
  },

  "a signal that has fired is a reading, and no request": async ({ open, upstream }) => {
    const fetch = await open(true);
    const count = upstream.count(pathOf(THING));
    const signal = AbortSignal.abort(new Error("nobody waits"));
    assert.deepEqual(await fetch({ storePathHash: THING, signal }), NOBODY_WAITS);
    assert.equal((await fetch({ storePathHash: OTHER })).kind, "found");
    assert.equal(upstream.count(pathOf(THING)), count);
  },

  "of requests at once each has its own reading": async ({ open }) => {
    const fetch = await open(true);
    const hashes = [THING, ABSENT, OTHER, THING];
    const readings = await Promise.all(hashes.map((storePathHash) => fetch({ storePathHash })));
    assert.deepEqual(
      readings.map((one) => one.kind === "found" ? one.narinfo.storePathHash : one.kind),
      [THING, "absent", OTHER, THING],
    );
  },
};

const NOBODY_WAITS = { kind: "failed", reason: "unreachable", detail: "nobody waits" } as const;

function pathOf(storePathHash: StorePathHash): string {
  return `/${storePathHash}.narinfo`;
}

function objectOf(storePathHash: StorePathHash) {
  const object = OBJECTS.find((one) => one.storePathHash === storePathHash);
  if (object === undefined) throw new Error(`Cannot find object ${storePathHash}`);
  return object;
}

/** With the reason of a failure. */
function kindOf(reading: NarinfoReading): readonly string[] {
  return reading.kind === "failed" ? [reading.kind, reading.reason] : [reading.kind];
}

async function failure(reading: Promise<NarinfoReading>) {
  const read = await reading;
  assert.ok(read.kind === "failed");
  return read;
}
