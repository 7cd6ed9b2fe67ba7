import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { FakeUpstream, type FakeUpstreamOptions } from "../support/fake_upstream.ts";
import { type LarderProcess, LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { type RawAnswer, rawRequest, requestText } from "../support/raw_http.ts";
import type { Keeping, Sight } from "../support/reliability_record.ts";
import { processorWaitMs } from "../support/processor_wait.ts";
import { checkNar, type ServedNarinfo, servedNarinfo } from "../support/served_nar.ts";
import { accountsOf, filesBelow, narFilesIn, narNameIn, rowsOf } from "../support/storage_look.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import type { Row } from "./row.ts";
import { assertSameBytes } from "../support/same_bytes.ts";

/** A larder process with its upstreams, and a client that asks it for one store object. */
export class Scene implements AsyncDisposable {
  readonly object: StoreObject;
  readonly upstream: FakeUpstream;
  readonly other: FakeUpstream | undefined;
  readonly #resources: AsyncDisposableStack;
  readonly #larder: LarderProcess;

  private constructor(
    { object, upstream, other }: Upstreams,
    larder: LarderProcess,
    resources: AsyncDisposableStack,
  ) {
    this.object = object;
    this.upstream = upstream;
    this.other = other;
    this.#larder = larder;
    this.#resources = resources;
  }

  static async open(row: Row): Promise<Scene> {
    const { narBytes = 1_000_000, upstream, other, flags } = row;
    await using opened = new AsyncDisposableStack();
    const object = makeStoreObject({ name: "thing-1.0", size: narBytes });
    const open = (options: FakeUpstreamOptions) =>
      opened.use(new FakeUpstream({ objects: [object], stored: true, ...options }));
    const upstreams = {
      object,
      upstream: open({ priority: 10, ...upstream }),
      other: other && open({ priority: 20, ...other }),
    };
    await row.breaksFirst?.(upstreams);
    const both = [upstreams.upstream, upstreams.other].filter((one) => one !== undefined);
    const larder = opened.use(
      await startLarder({
        "cache-upstream-url": both.map(({ url }) => url),
        "cache-upstream-public-key": both.map(({ publicKey }) => publicKey),
        "prometheus-enabled": "true",
        ...LONG_TIMEOUTS,
        "cache-upstream-body-idle-timeout": "700ms",
        ...flags,
      }),
    );
    return new Scene(upstreams, larder, opened.move());
  }

  get port(): number {
    return this.#larder.port;
  }

  get storage(): string {
    return this.#larder.storage;
  }

  /** Runs `work`. Counts its time, less the time that larder and clients wait for a processor. */
  async timed<Result>(work: () => Promise<Result>): Promise<readonly [Result, number]> {
    const pids = [Deno.pid, this.#larder.pid];
    const waitedBefore = processorWaitMs(pids);
    const startedAtMs = performance.now();
    const result = await work();
    const tookMs = performance.now() - startedAtMs;
    return [result, tookMs - (processorWaitMs(pids) - waitedBefore)];
  }

  /** The right bytes of the NAR file. */
  async bytes(): Promise<Bytes> {
    return (await this.upstream.narFileOf(this.object)).bytes;
  }

  narinfo(): Promise<ServedNarinfo> {
    return servedNarinfo(this.port, this.object.storePathHash);
  }

  request(method: string, path: string): Promise<RawAnswer> {
    return rawRequest(this.port, requestText(method, path));
  }

  /** Asks as Nix does: for the narinfo, then for the NAR. */
  async pull({ storePathHash }: StoreObject = this.object): Promise<Sight> {
    const { status } = await this.request("GET", `/${storePathHash}.narinfo`);
    if (status === 404) return "absent";
    const narinfo = await servedNarinfo(this.port, storePathHash);
    return await this.sightOf(await this.request("GET", narinfo.narPath), narinfo);
  }

  /**
   * The view of a client that gets this response for the NAR. Fails for 5xx, and for a response
   * that looks whole and is wrong.
   */
  async sightOf(answer: RawAnswer, narinfo: ServedNarinfo): Promise<Sight> {
    if (answer.status === 404) return "absent";
    assert.equal(answer.status, 200);
    if (!answer.complete) return "cut";
    await checkNar(narinfo, answer.body);
    return "whole";
  }

  /** The state of the object in the storage, once no download is running. */
  async kept({ storePathHash }: StoreObject = this.object): Promise<Keeping> {
    await this.quiet();
    await eventually("the replaced files are gone", () => {
      return accountsOf(this.storage).pending.length === 0;
    });
    const rows = rowsOf(this.storage);
    const files = narFilesIn(this.storage);
    const kept = rows("SELECT name, kept_size FROM nar WHERE kept_size IS NOT NULL");
    const counted = kept.map(([name, size]) => `${name} ${size}`).toSorted();
    const there = [...files].map(([path, size]) => `${narNameIn(path)} ${size}`);
    if (counted.join() !== there.toSorted().join()) return "damaged";
    const [row] = rows(
      "SELECT n.name, coalesce(n.kept_size, -1) FROM path p JOIN narinfo i ON i.path_id = p.id " +
        `JOIN nar n ON n.id = i.nar_id WHERE p.hash = '${storePathHash}'`,
    );
    if (row === undefined) return "nothing";
    const [name, size] = row;
    if (size === "-1") return "narinfo";
    const path = [...files.keys()].find((one) => narNameIn(one) === name) ?? "";
    const isObject = storePathHash === this.object.storePathHash;
    if (isObject) assertSameBytes(Deno.readFileSync(path), await this.bytes());
    return "nar";
  }

  /** Resolves when no download is running, and nothing is left of any. */
  async quiet(): Promise<void> {
    await eventually("no download is running", async () => {
      const { body } = await this.request("GET", "/metrics");
      const text = new TextDecoder().decode(body);
      return /^larder_in_flight_downloads 0$/m.test(text) && this.growing.length === 0;
    });
  }

  /** Files of running downloads. */
  get growing(): readonly string[] {
    const paths = [...filesBelow(`${this.storage}/tmp`).keys()];
    return paths.filter((path) => path.endsWith(".part"));
  }

  /** Ends all faults of upstreams, and resolves when the object comes whole. */
  async mended(): Promise<void> {
    for (const upstream of [this.upstream, this.other]) {
      if (upstream === undefined) continue;
      upstream.mend();
      upstream.onRequest = undefined;
      await upstream.start();
    }
    await eventually("it comes whole", async () => await this.pull() === "whole");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

export interface Upstreams {
  readonly object: StoreObject;
  readonly upstream: FakeUpstream;
  readonly other: FakeUpstream | undefined;
}
