import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { Gate } from "../support/faults.ts";
import type { LarderFlags, LarderProcess } from "../support/larder_process.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { queryPostgres } from "../support/postgres_programs.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { record } from "../support/reliability_record.ts";
import { Replicas } from "../support/replicas.ts";
import { runLarder } from "../support/run_larder.ts";
import { type S3Fault, S3FaultProxy, type S3Request } from "../support/s3_fault_proxy.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { servedNar, type ServedNarinfo, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";

/** Too large for the memory of small files. */
const NAR_BYTES = 700_000;
const S3_SLOW_MS = 500;
const S3_CUT_BYTES = 250_000;

const excuse = redisMissing || postgresMissing || S3_UNAVAILABLE ||
  programsMissing("nginx");
const postgres = excuse === "" ? PostgresServer.start() : undefined;
const s3 = excuse === "" ? await S3Server.start() : undefined;

interface NewObjects {
  readonly warm: readonly StoreObject[];
  /** The outage begins in the middle of its download. */
  readonly halfway: StoreObject;
  readonly cold: readonly StoreObject[];
}

interface Outage {
  begin(scene: Scene): void;
  end(scene: Scene): void;
  /** Whether larders have met it. */
  isMet(scene: Scene): boolean | Promise<boolean>;
  /** True: it ends while clients wait. Default: all NARs come in it. */
  readonly endsFirst?: true;
}

const OUTAGES: Readonly<Record<string, Outage>> = {
  "PostgreSQL restarts": {
    begin: () => postgres?.stop("fast"),
    end: () => postgres?.start(),
    isMet: (scene) => scene.saidBy("database does not answer") > 0,
    endsFirst: true,
  },
  "S3 is slow": s3Outage(() => ({ holdUntil: clock.pause(S3_SLOW_MS) })),
  "S3 answers SlowDown": s3Outage(() => ({ status: 503, code: "SlowDown" })),
  "S3 cuts NARs, and the answers to uploads": s3Outage(({ method }) => (
    method === "GET" ? { cutAfter: S3_CUT_BYTES } : method === "PUT" ? "lose the answer" : undefined
  )),
  "larders are cut off from each other": {
    begin({ servers: { between } }) {
      for (const proxy of between) {
        proxy.isRefusing = true;
        proxy.cutAll();
      }
    },
    end({ servers: { between } }) {
      for (const proxy of between) proxy.isRefusing = false;
    },
    isMet: async (scene) => await scene.halfwayRequests() > 1,
  },
};

for (const [fault, outage] of Object.entries(OUTAGES)) {
  testUnless(
    excuse,
    `outages: two, then three larders behind nginx, ${fault}: all NARs come whole, and are kept`,
    async () => {
      await using scene = await Scene.open();
      for (const count of [2, 3]) {
        while (scene.larders.length < count) await scene.replicas.add();
        await comeThrough(scene, outage);
      }
      await scene.checkStorage();
      const row = { area: "members", saw: "whole", kept: "nar" } as const;
      record({ ...row, fault: `two and three larders behind nginx: ${fault}` });
    },
  );
}

/** Fails unless each client gets its NAR, and all NARs are kept in the end. */
async function comeThrough(scene: Scene, outage: Outage): Promise<void> {
  const { warm, cold, halfway } = scene.newObjects();
  const { larders } = scene;
  const kept = scene.keptFiles();
  await using front = await NginxFront.open(larders.map(({ port }) => port));
  for (const object of warm) await pull(front, object);
  await eventually("the warm ones are kept", () => scene.keptFiles() === kept + warm.length);
  const gate = new Gate();
  using _open = { [Symbol.dispose]: () => gate.open() };
  const begun = await scene.beginHalfway(front, gate);

  outage.begin(scene);
  const asked = together([...warm, ...cold].map((object) => pull(front, object)));
  await eventually("the outage is met", () => outage.isMet(scene));
  gate.open();
  const whole = together([begun.over, asked]);
  if (outage.endsFirst === undefined) await whole;
  outage.end(scene);
  await whole;

  const all = [...warm, ...cold, halfway];
  await eventually("all are kept", async () => {
    for (const object of all) await pull(front, object);
    return scene.keptFiles() === kept + all.length;
  });
  for (const larder of larders) {
    for (const object of all) assert.equal(await pull(larder, object), "HIT");
  }
}

/** Rejects as the first of them, and only if the result is awaited. */
function together(pulls: readonly Promise<unknown>[]): Promise<unknown> {
  const all = Promise.all(pulls);
  all.catch(() => undefined);
  return all;
}

/** The fate of requests to S3. */
function s3Outage(faultOf: (request: S3Request) => S3Fault | undefined): Outage {
  let isMet = false;
  return {
    begin({ servers: { toS3 } }) {
      isMet = false;
      toS3.fault = (request) => {
        const fault = faultOf(request);
        isMet ||= fault !== undefined;
        return fault;
      };
    },
    end({ servers: { toS3 } }) {
      toS3.fault = () => undefined;
    },
    isMet: () => isMet,
  };
}

/** `X-Cache` of the NAR. Fails unless the narinfo is there, and the NAR comes right and whole. */
async function pull(
  { port }: { readonly port: number },
  { storePathHash }: StoreObject,
): Promise<string | null> {
  return await pullNar(port, await servedNarinfo(port, storePathHash));
}

async function pullNar(port: number, narinfo: ServedNarinfo): Promise<string | null> {
  const { status, headers } = await servedNar(port, narinfo);
  assert.equal(status, 200, "the NAR's status");
  return headers.get("x-cache");
}

interface SceneServers {
  readonly upstream: FakeUpstream;
  readonly toS3: S3FaultProxy;
  /** From each larder to the others. */
  readonly between: readonly FaultProxy[];
  /** The places of rows and NAR files. */
  readonly flags: LarderFlags & { readonly "cache-database-url": string };
}

/** Two larders, and maybe more, on PostgreSQL, S3 and Redis. */
class Scene implements AsyncDisposable {
  #objects = 0;
  #halfway: StoreObject | undefined;
  /** Lines of each larder's log before these objects. */
  #linesBefore: readonly number[] = [];

  private constructor(
    readonly servers: SceneServers,
    readonly replicas: Replicas,
    readonly opened: AsyncDisposable,
  ) {}

  static async open(): Promise<Scene> {
    assert.ok(postgres && s3);
    await using opening = new AsyncDisposableStack();
    const upstream = opening.use(await fakeUpstream({ stored: true }));
    const redis = opening.use(await RedisServer.open());
    const toS3 = opening.use(new S3FaultProxy(s3.port));
    const opened = opening.use(new AsyncDisposableStack());
    const between: FaultProxy[] = [];
    const flags = {
      ...s3Flags(s3.bucket(toS3.port)),
      "cache-database-url": await postgres.createMigrated(),
      // Else the larder with the narinfo fetches the NAR, too.
      "cache-prefetch": "false",
    };
    const advertised = (targetPort: number) => {
      const proxy = opened.use(new FaultProxy({ targetPort }));
      between.push(proxy);
      return proxy.port;
    };
    const common = { upstream, redis, flags, areApart: true, advertised };
    const replicas = opening.use(await Replicas.start(common));
    return new Scene({ upstream, toS3, between, flags }, replicas, opening.move());
  }

  get larders(): readonly LarderProcess[] {
    return this.replicas.larders;
  }

  newObjects(): NewObjects {
    const made = Array.from({ length: 4 }, () => (
      makeStoreObject({ name: "pulled", seed: ++this.#objects, size: NAR_BYTES })
    ));
    this.servers.upstream.add(...made);
    this.#linesBefore = this.larders.map(({ lines }) => lines.length);
    const [halfway, ...others] = made;
    assert.ok(halfway);
    this.#halfway = halfway;
    return { halfway, warm: others.slice(0, 1), cold: others.slice(1) };
  }

  /** How many larders have logged it since there are new objects. */
  saidBy(message: string): number {
    return this.larders.filter(({ lines }, place) => (
      lines.slice(this.#linesBefore[place]).some(({ msg }) => msg === message)
    )).length;
  }

  keptFiles(): number {
    const { "cache-database-url": url } = this.servers.flags;
    const rows = queryPostgres(url, "SELECT kept_files FROM stock");
    return Number(rows[0]);
  }

  /** Requests for the NAR whose download is halfway. */
  async halfwayRequests(): Promise<number> {
    assert.ok(this.#halfway);
    const { upstream } = this.servers;
    return upstream.count(`/${await upstream.narUrlOf(this.#halfway)}`);
  }

  /** A client of each larder, of which one downloads the NAR, and has half of it. */
  async beginHalfway(
    { port }: NginxFront,
    gate: Gate,
  ): Promise<{ readonly over: Promise<unknown> }> {
    const { servers: { upstream }, larders } = this;
    const halfway = this.#halfway;
    assert.ok(halfway);
    upstream.breakNar(gate.fault, halfway);
    gate.release(NAR_BYTES / 2);
    const narinfo = await servedNarinfo(port, halfway.storePathHash);
    const over = together(larders.map(() => pullNar(port, narinfo)));
    await gate.reached(NAR_BYTES / 2);
    // One without a lock, on a busy machine, asks the upstream.
    await eventually("the others read it", async () => (
      this.saidBy("reading nar from another member") + await this.halfwayRequests() >=
        larders.length
    ));
    return { over };
  }

  /** Fails unless each stored object is right, and belongs to a row. */
  async checkStorage(): Promise<void> {
    const { larders, servers: { flags }, replicas: { storage } } = this;
    for (const larder of larders) larder.kill("SIGTERM");
    for (const larder of larders) assert.equal((await larder.ended).code, 0);
    // Its requests to S3 are many, and need no proxy.
    const endpoint = `http://127.0.0.1:${s3?.port}`;
    const places = { "cache-storage-local": storage, "cache-storage-s3-endpoint": endpoint };
    const given = { ...flags, ...places };
    const words = Object.entries(given).map(([name, value]) => `--${name}=${value}`);
    const { status, out, err } = await runLarder(["fsck", "--verify-content", ...words]);
    assert.equal(status, 0, out + err);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.opened[Symbol.asyncDispose]();
  }
}
