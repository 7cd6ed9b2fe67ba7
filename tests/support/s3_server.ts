import { createHash } from "node:crypto";
import { clock } from "../../src/runtime/current.ts";
import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import { freePort } from "./free_port.ts";
import type { LarderFlags } from "./larder_process.ts";
import { unlessFile } from "./program.ts";

const PROGRAM = programPath();

/** Why tests with it cannot run here; empty when they can. */
export const S3_UNAVAILABLE = unlessFile(
  PROGRAM,
  "the S3 server versitygw is not built (scripts/versitygw; needs Go 1.25)",
);

export const S3_KEYS = { accessKeyId: "larder-test", secretAccessKey: "larder-test-secret" };

const START_LIMIT_MS = 20_000;

const REMOVALS_MAX = 100;
const REMOVAL_PAUSE_MS = 10;

/** The place of the program that `scripts/versitygw` builds. */
function programPath(): string {
  const hash = createHash("sha256");
  for (const name of ["go.mod", "go.sum"]) {
    hash.update(Deno.readFileSync(new URL(`./versitygw/${name}`, import.meta.url)));
  }
  const cache = Deno.env.get("XDG_CACHE_HOME") || `${Deno.env.get("HOME")}/.cache`;
  return `${cache}/larder/versitygw-${hash.digest("hex").slice(0, 16)}`;
}

/** A real S3 server for all tests of a file. It ends with them, or is disposed of before. */
export class S3Server implements AsyncDisposable {
  readonly port = freePort();
  readonly #folder: string;
  #child: Deno.ChildProcess | undefined;
  #buckets = 0;

  private constructor() {
    this.#folder = Deno.makeTempDirSync({ prefix: "larder-test-s3-" });
    Deno.mkdirSync(this.bucketsFolder);
    this.#child = this.#spawn();
    globalThis.addEventListener("unload", () => {
      this.#child?.kill("SIGKILL");
      removeFolder(this.#folder);
    });
  }

  /** Call it outside of tests, so that none of them owns the process; or dispose of it. */
  static async start(): Promise<S3Server> {
    const server = new S3Server();
    await server.#listens();
    return server;
  }

  /** Resolves when it is dead. Its buckets stay. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    child?.ref();
    child?.kill("SIGKILL");
    await child?.status;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  /** Starts it again after its death. */
  async revive(): Promise<void> {
    this.#child = this.#spawn();
    await this.#listens();
  }

  #spawn(): Deno.ChildProcess {
    const child = new Deno.Command(PROGRAM, {
      args: [
        ...["--access", S3_KEYS.accessKeyId, "--secret", S3_KEYS.secretAccessKey],
        ...["--port", `127.0.0.1:${this.port}`, "--region", "us-east-1", "--quiet"],
        ...["posix", this.bucketsFolder],
      ],
      cwd: this.#folder,
      stdout: "null",
      stderr: "null",
    }).spawn();
    child.unref();
    return child;
  }

  async #listens(): Promise<void> {
    for (const untilMs = performance.now() + START_LIMIT_MS; performance.now() < untilMs;) {
      try {
        (await Deno.connect({ hostname: "127.0.0.1", port: this.port })).close();
        return;
      } catch {
        await clock.pause(20);
      }
    }
    throw new Error("Cannot start versitygw: it does not listen");
  }

  /** Each folder in it is a bucket. */
  get bucketsFolder(): string {
    return `${this.#folder}/buckets`;
  }

  /** Where the objects of a bucket are files. */
  folderOf({ bucket }: S3Place): string {
    return `${this.bucketsFolder}/${bucket}`;
  }

  /** Uploads in parts that have not ended. */
  unfinishedIn(place: S3Place): readonly string[] {
    const multipart = `${this.folderOf(place)}/.sgwtmp/multipart`;
    return namesIn(multipart).flatMap((key) => namesIn(`${multipart}/${key}`));
  }

  /** A bucket that holds nothing; `port` is of a proxy in front. */
  bucket(port = this.port): S3Place {
    const bucket = `bucket-${++this.#buckets}`;
    Deno.mkdirSync(`${this.bucketsFolder}/${bucket}`);
    return {
      bucket,
      endpoint: `http://127.0.0.1:${port}`,
      region: "us-east-1",
      credentials: S3_KEYS,
      forcePathStyle: true,
    };
  }
}

/** A server that was killed just now may write another file meanwhile. */
function removeFolder(path: string): void {
  for (let triesLeft = REMOVALS_MAX;; triesLeft--) {
    try {
      return Deno.removeSync(path, { recursive: true });
    } catch (error) {
      if (triesLeft === 0) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVAL_PAUSE_MS);
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** The options of a larder that keeps its NAR files there. */
export function s3Flags({ bucket, endpoint = "", credentials }: S3Place): LarderFlags {
  return {
    "cache-storage-s3-bucket": bucket,
    "cache-storage-s3-endpoint": endpoint,
    "cache-storage-s3-force-path-style": "true",
    ...(credentials === undefined ? {} : {
      "cache-storage-s3-access-key-id": credentials.accessKeyId,
      "cache-storage-s3-secret-access-key": credentials.secretAccessKey,
    }),
  };
}
