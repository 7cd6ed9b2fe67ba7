import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type {
  FetchListener,
  FetchOrder,
  FetchOutcome,
  FetchProgress,
  NarFetcher,
} from "../../src/cache/fetch/nar_fetcher.ts";
import type { NarSource } from "../../src/metadata/metadata_store.ts";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import type { FakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, firstTimes, heldUntil, stallAfter, status } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Clauses } from "./contract.ts";

/** A fetcher from an upstream that has OBJECT. */
export interface FetcherScene {
  /** It waits for a silent body longer than any clause takes, on a busy machine. */
  readonly fetcher: NarFetcher;
  /** It gives a silent body up after a second. */
  readonly quick: NarFetcher;
  readonly upstream: FakeUpstream;
  /** The location of OBJECT's NAR file there. */
  readonly location: string;
  readonly file: Uint8Array;
  /** An empty file. */
  readonly path: string;
}

export const OBJECT = makeStoreObject({ name: "thing-1.0", size: 200_000 });

const NAR_REGEXP = /^\/nar\//;
const CUT_BYTES = 50_000;
const ENDS_WITHIN_MS = 10_000;

export const narFetcherClauses: Clauses<FetcherScene> = {
  "a whole file is written, and ends with its size and its digest": async (scene) => {
    const fetch = begin(scene);
    assert.deepEqual(factsOf(await fetch.from()), whole(scene));
    assert.deepEqual(Deno.readFileSync(scene.path), new Uint8Array(scene.file));
    fetch.end();
  },

  "the source is taken, then the file is opened, then its bytes come": async (scene) => {
    const fetch = begin(scene);
    await fetch.from();
    const [taken, opened, ...bytes] = fetch.events;
    assert.deepEqual([taken, opened], ["taken", { type: "opened", fileSize: scene.file.length }]);
    assert.deepEqual(bytes.at(-1), { type: "bytes", received: scene.file.length });
    fetch.end();
  },

  "after a break the next source sends the rest": async (scene) => {
    const { upstream } = scene;
    const fetch = begin(scene);
    upstream.breakNar(cutAfter(CUT_BYTES));
    assert.equal(reasonOf(await fetch.from()), "upstream");
    upstream.mend();
    assert.deepEqual(factsOf(await fetch.from()), whole(scene));
    const ranges = upstream.matching(NAR_REGEXP).map(({ headers }) => headers.get("range"));
    assert.deepEqual(ranges, [null, `bytes=${CUT_BYTES}-`]);
    assert.deepEqual(Deno.readFileSync(scene.path), new Uint8Array(scene.file));
    fetch.end();
  },

  "an unknown upstream and a 404 are an absence": async (scene) => {
    const fetch = begin(scene);
    const { location } = scene;
    const elsewhere = { upstream: "https://other.example", location };
    assert.equal((await fetch.from(elsewhere)).type, "absent");
    const lost = { upstream: scene.upstream.url, location: "nar/lost.nar" };
    assert.equal((await fetch.from(lost)).type, "absent");
    fetch.end();
  },

  "a refusal is a failure with its status": async (scene) => {
    const fetch = begin(scene);
    scene.upstream.breakNar(status(500));
    const { status: given, ...outcome } = await fetch.from();
    assert.deepEqual([reasonOf(outcome), given], ["status", 500]);
    fetch.end();
  },

  "a refusal for load is tried again, unless the request is final": async (scene) => {
    for (const isFinal of [true, false]) {
      const fetch = begin(scene);
      scene.upstream.breakNar(firstTimes(1, status(503)));
      const { requests, ...outcome } = await fetch.from(undefined, isFinal);
      assert.deepEqual([reasonOf(outcome), requests], isFinal ? ["status", 1] : ["end", 2]);
      fetch.end();
    }
  },

  "an upstream that is off is a failure, and another source may follow": async (scene) => {
    const fetch = begin(scene);
    await scene.upstream.stop();
    assert.equal(reasonOf(await fetch.from()), "unreachable");
    await scene.upstream.start();
    assert.deepEqual(factsOf(await fetch.from()), whole(scene));
    fetch.end();
  },

  "a body that stalls is given up": async (scene) => {
    const fetch = begin({ ...scene, fetcher: scene.quick });
    scene.upstream.breakNar(stallAfter(CUT_BYTES));
    assert.equal(reasonOf(await fetch.from()), "stalled");
    fetch.end();
  },

  "beyond its room it asks for more, and writes no more than it gets": async (scene) => {
    const { file } = scene;
    for (const granted of [file.length, CUT_BYTES]) {
      const asked: number[] = [];
      const room = async (bytes: number) => {
        asked.push(bytes);
        return granted;
      };
      const fetch = begin(scene, { roomBytes: CUT_BYTES }, { room });
      const outcome = await fetch.from();
      assert.ok(asked[0] && asked[0] > CUT_BYTES && asked[0] <= file.length, `${asked}`);
      if (granted === file.length) assert.deepEqual(factsOf(outcome), whole(scene));
      else assert.equal(reasonOf(outcome), "room");
      assert.ok(Deno.statSync(scene.path).size <= granted);
      fetch.end();
    }
  },

  "a file that cannot be written is a failure of the disk": async (scene) => {
    const fetch = begin({ ...scene, path: `${scene.path}/nothing` });
    assert.equal(reasonOf(await fetch.from()), "disk");
    fetch.end();
  },

  "of two sources the first to answer is taken, and the other is outrun": async (scene) => {
    const fetch = begin(scene);
    const never = Promise.withResolvers<void>();
    scene.upstream.breakNar(firstTimes(1, heldUntil(never.promise)));
    const late = fetch.from();
    await scene.upstream.requested(NAR_REGEXP);
    assert.deepEqual(factsOf(await fetch.from()), whole(scene));
    assert.equal(reasonOf(await late), "outrun");
    assert.equal(fetch.events.filter((event) => event === "taken").length, 1);
    never.resolve();
    fetch.end();
  },

  "its end ends a request that runs, and every later one": async (scene) => {
    const fetch = begin(scene);
    const never = Promise.withResolvers<void>();
    scene.upstream.breakNar(heldUntil(never.promise));
    const running = fetch.from();
    const request = await scene.upstream.requested(NAR_REGEXP);
    fetch.end();
    for (const ended of [running, fetch.from()]) {
      const outcome = await clock.within(ended, ENDS_WITHIN_MS);
      assert.ok(outcome, "a request does not settle");
      assert.equal(reasonOf(outcome), "cancelled");
    }
    await eventually("the connection is closed", () => scene.upstream.openConnections === 0);
    never.resolve();
    await request.finished;
  },
};

/** One file in flight, and its events. */
function begin(
  { fetcher, upstream, location, file, path }: Omit<FetcherScene, "quick">,
  order: Partial<FetchOrder> = {},
  listener: Partial<FetchListener> = {},
) {
  const events: (FetchProgress | "taken")[] = [];
  const facts = { fileSize: file.length, fileSizeMax: file.length, anySource: true };
  const fetch = fetcher.begin({ path, roomBytes: file.length, ...facts, ...order }, {
    progress: (event) => void events.push(event),
    room: (bytes) => Promise.resolve(bytes),
    ...listener,
  });
  const own: NarSource = { upstream: upstream.url, location };
  return {
    events,
    from: (source = own, isFinal = true): Promise<FetchOutcome> =>
      fetch.from(source, () => void events.push("taken"), isFinal),
    end: () => fetch[Symbol.dispose](),
  };
}

/** Without the status and the count of the requests. */
function factsOf({ status: _, requests: _2, ...outcome }: FetchOutcome) {
  if (outcome.type !== "end") return outcome;
  return { ...outcome, digest: new Uint8Array(outcome.digest) };
}

function whole({ file }: FetcherScene) {
  const digest = new Uint8Array(createHash("sha256").update(file).digest());
  return { type: "end", fileSize: file.length, digest, maybeShort: false };
}

function reasonOf(outcome: FetchOutcome): string {
  return outcome.type === "failed" ? outcome.reason : outcome.type;
}
