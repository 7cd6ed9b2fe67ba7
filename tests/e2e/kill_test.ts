import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { Gate, heldUntil } from "../support/faults.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { lockRows } from "../support/locked_rows.ts";
import { RawConnection, type RawHead, requestText } from "../support/raw_http.ts";
import { record } from "../support/reliability_record.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { isInBucket } from "../support/shared_servers.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { accountsOf, filesBelow, narFilesIn } from "../support/storage_look.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

interface Scene {
  readonly upstream: FakeUpstream;
  readonly larder: LarderProcess;
  /** Of the NAR file. */
  readonly fileSize: number;
  readonly client: NarClient;
}

/** Whether the next start has the NAR. "As its row": it does with a row, and without none. */
type Fate = "fetched again" | "verified" | "as its row" | "kept";

interface Point {
  /**
   * Lets the client ask, and resolves when the process is to be killed. What holds it at this point
   * is disposed of once it is dead.
   */
  reach(scene: Scene): Promise<AsyncDisposable | void>;
  /** Default: 4 MB. */
  readonly object?: () => StoreObject;
  /** The fate of the NAR; by default larder has to fetch it again. */
  readonly after?: Fate;
  /** Whether the client may have all of it by then. */
  readonly mayBeWhole?: boolean;
  /** In the words of the table of faults, which omits the others. */
  readonly told?: string;
}

const NAR_REGEXP = /^\/nar\//;
const SMALL = () => makeStoreObject({ name: "small", size: 4_000_000 });
// Takes long enough to be decompressed that there is no check result when all bytes are here.
const SLOW_TO_VERIFY = () => makeStoreObject({ name: "slow-to-verify", size: 40_000_000 });

const POINTS: Readonly<Record<string, Point>> = {
  "before the upstream answers": {
    told: "before the upstream answers",
    async reach({ upstream, client }) {
      const never = Promise.withResolvers<never>();
      upstream.breakNar(heldUntil(never.promise));
      await client.ask();
      await upstream.requested(NAR_REGEXP);
    },
  },
  "after the upstream's headers": {
    async reach({ upstream, client }) {
      const gate = new Gate();
      upstream.breakNar(gate.fault);
      await client.ask();
      await gate.reached(0);
    },
  },
  "at 10 %": partly((fileSize) => Math.floor(fileSize / 10)),
  "at 50 %": { ...partly((fileSize) => Math.floor(fileSize / 2)), told: "halfway" },
  "at all bytes but one": partly((fileSize) => fileSize - 1),
  "with all bytes and no check result": {
    mayBeWhole: true,
    told: "with all bytes here and not verified",
    after: "verified",
    object: SLOW_TO_VERIFY,
    reach: allBytesHere,
  },
  "with the file in its place, and its row or none": {
    after: "as its row",
    mayBeWhole: true,
    told: "with the file in its place, and its row or none",
    async reach({ larder, client }) {
      await client.ask();
      await eventually("the file is in its place", () => storedSizes(larder).length > 0);
    },
  },
  "after the row": {
    after: "kept",
    mayBeWhole: true,
    told: "after the row",
    async reach({ larder, client }) {
      await client.ask();
      await larder.logged("nar cached successfully");
    },
  },
};

for (const [name, point] of Object.entries(POINTS)) {
  Deno.test(`killed ${name}: NARs served then are whole, the rest is fetched again`, () => {
    return killedAt(point);
  });
}

async function killedAt(point: Point): Promise<void> {
  let { after = "fetched again" }: { after?: Fate } = point;
  using storage = tempFolder();
  const object = (point.object ?? SMALL)();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const flags = {
    "cache-storage-local": storage.path,
    "cache-max-size": "100M",
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
  const { length: fileSize } = (await upstream.narFileOf(object)).bytes;

  {
    await using larder = await startLarder(flags);
    const narinfo = await servedNarinfo(larder.port, object.storePathHash);
    await using client = await NarClient.open(larder.port, narinfo.narPath);
    await using _held = await point.reach({ upstream, larder, fileSize, client }) ?? undefined;
    larder.kill("SIGKILL");
    await larder.ended;
    const inPlace = storedSizes(larder);
    const isInPlace = after === "kept" || after === "as its row";
    assert.deepEqual(inPlace, isInPlace ? [fileSize] : [], "killed at that point");
    const { complete, bytes } = await client.rest();
    assert.ok(!complete || point.mayBeWhole, "it cannot be known to be right yet");
    if (complete) await checkNar(narinfo, bytes);
    else assert.ok(bytes.length < fileSize, "a file that looks cut is cut");
  }

  if (after === "as its row") {
    // A dead larder's last statement may still run.
    await using _locked = await lockRows(storage.path);
    // Beside a bucket the received file may still be there: a start puts it there again.
    const isKnown = accountsOf(storage.path).keptFiles === 1 || spooledIn(storage.path).length > 0;
    after = isKnown ? "kept" : "fetched again";
  }
  await upstream.stop();
  silenceMembers(storage.path);
  await using larder = await startLarder(flags);
  if (after === "verified") await larder.logged("received nar kept");
  const narinfo = await servedNarinfo(larder.port, object.storePathHash);
  const { status } = await servedNar(larder.port, narinfo);
  assert.equal(status, after === "fetched again" ? 404 : 200);
  if (status === 200 && isInBucket(storage.path)) {
    await eventually("it is kept", () => accountsOf(storage.path).keptFiles === 1);
  }
  // No file is there that is not counted: the start settles unfinished removals and downloads.
  assert.deepEqual(storedSizes(larder), status === 200 ? [fileSize] : []);
  assert.deepEqual(spooledIn(storage.path), []);
  // A member gives its own spare bytes back with a heartbeat.
  await eventually("the dead one's bytes are free", () => {
    return accountsOf(storage.path).reserved.join() === "0";
  });

  const askedBefore = upstream.count(NAR_REGEXP);
  upstream.mend();
  await upstream.start();
  const answer = await servedNar(larder.port, narinfo);
  assert.equal(answer.status, 200);
  if (status === 404) await larder.logged("nar cached successfully");
  const again = await servedNar(larder.port, narinfo);
  const sources = [answer, again].map(({ headers }) => headers.get("x-cache"));
  assert.deepEqual(sources, status === 200 ? ["HIT", "HIT"] : ["MISS", "HIT"]);
  assert.equal(upstream.count(NAR_REGEXP) - askedBefore, status === 200 ? 0 : 1);
  assert.deepEqual(storedSizes(larder), [fileSize]);
  if (point.told === undefined) return;
  const saw = point.mayBeWhole ? "whole-or-cut" : "cut";
  const kept = point.after === "as its row"
    ? "whole-or-nothing"
    : status === 200
    ? "nar"
    : "narinfo";
  record({ area: "machine", fault: `larder is killed (\`kill -9\`) ${point.told}`, saw, kept });
}

Deno.test("killed with all bytes before the check result: the next start has the NAR", async () => {
  using storage = tempFolder();
  const object = SLOW_TO_VERIFY();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const flags = {
    "cache-storage-local": storage.path,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
  const { length: fileSize } = (await upstream.narFileOf(object)).bytes;
  {
    await using larder = await startLarder(flags);
    const { narPath } = await servedNarinfo(larder.port, object.storePathHash);
    await using client = await NarClient.open(larder.port, narPath);
    await using _held = await allBytesHere({ upstream, larder, fileSize, client });
    larder.kill("SIGKILL");
    await larder.ended;
    assert.deepEqual(storedSizes(larder), []);
  }
  await upstream.stop();

  await using larder = await startLarder(flags);
  const narinfo = await servedNarinfo(larder.port, object.storePathHash);
  const first = await servedNar(larder.port, narinfo);
  assert.equal(first.status, 200);
  assert.match(first.headers.get("x-cache") ?? "", /^(JOINED|HIT)$/);
  await larder.logged("received nar kept");
  const again = await servedNar(larder.port, narinfo);
  assert.equal(again.headers.get("x-cache"), "HIT");
  assert.equal(upstream.count(NAR_REGEXP), 1);
});

/** All bytes are here, and no row of it can be written, so that the file is not in its place. */
async function allBytesHere(
  { upstream, larder, fileSize, client }: Scene,
): Promise<AsyncDisposable> {
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await client.ask();
  gate.release(fileSize - 1);
  await gate.reached(fileSize - 1);
  const rows = await lockRows(larder.storage);
  gate.open();
  await eventually("all bytes are here", () => (
    spooledIn(larder.storage).some((path) => path.endsWith(".received"))
  ));
  return rows;
}

/** The client has all that came but the last byte, which waits for the rest. */
function partly(part: (fileSize: number) => number): Point {
  return {
    async reach({ upstream, fileSize, client }) {
      const gate = new Gate();
      upstream.breakNar(gate.fault);
      await client.ask();
      gate.release(part(fileSize));
      await client.has(part(fileSize) - 1);
    },
  };
}

/** The sizes of the stored NAR files. */
function storedSizes({ storage }: LarderProcess): readonly number[] {
  return [...narFilesIn(storage).values()];
}

/** The paths of the files that larders work on, or have left. */
function spooledIn(storage: string): readonly string[] {
  return [...filesBelow(`${storage}/tmp`).keys()];
}

/** Asks for a NAR once, and reads as much of it as the test likes. */
class NarClient implements AsyncDisposable {
  readonly #connection: RawConnection;
  readonly #path: string;
  readonly #parts: Bytes[] = [];
  #head: RawHead | undefined;

  private constructor(connection: RawConnection, path: string) {
    this.#connection = connection;
    this.#path = path;
  }

  static async open(port: number, path: string): Promise<NarClient> {
    return new NarClient(await RawConnection.open(port), path);
  }

  ask(): Promise<void> {
    return this.#connection.send(requestText("GET", this.#path));
  }

  /** Reads these first bytes of a good answer. */
  async has(byteLength: number): Promise<void> {
    this.#head = await this.#connection.answer();
    assert.equal(this.#head.status, 200);
    this.#parts.push(await this.#head.reader.read(byteLength));
    assert.equal(this.#parts[0]?.length, byteLength);
  }

  /** All bytes until the end, and whether they are as many as the server announced. */
  async rest(): Promise<{ complete: boolean; bytes: Bytes }> {
    const { reader } = this.#head ?? await this.#connection.answer();
    this.#parts.push(await reader.read());
    return { complete: reader.isComplete, bytes: await new Blob(this.#parts).bytes() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
  }
}
