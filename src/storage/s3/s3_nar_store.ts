import { EitherSignal } from "../../base/either_signal.ts";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { Failure } from "../../base/failure.ts";
import { parseStoredName, type Seal, type StoredName } from "../../nix/stored_name.ts";
import { clock } from "../../runtime/current.ts";
import type {
  ListedNar,
  ListOptions,
  NarLocator,
  NarStore,
  OpenOptions,
  StoredNar,
} from "../nar_store.ts";
import { OpenS3Nar } from "./open_s3_nar.ts";
import type { S3Access } from "./s3_access.ts";
import { isNoSuchKey, isNotFound, s3Failure } from "./s3_failures.ts";
import { keyOf, NAR_PREFIX, type S3Object, s3Object, s3SealOf } from "./s3_object.ts";
import { S3Uploads } from "./s3_uploads.ts";

/** How long a client waits for a store that does not answer, its retries included. */
const OPEN_MAX_MS = 5_000;

/** Pages of one list, of 1,000 keys each. */
const LIST_PAGES_MAX = 10_000;

/** NAR files as objects of one bucket: `nar/<stored name>`. */
export class S3NarStore implements NarStore, NarLocator, AsyncDisposable {
  readonly #s3: S3Access;
  readonly #uploads: S3Uploads;
  readonly #listPagesMax: number;

  constructor(s3: S3Access, listPagesMax = LIST_PAGES_MAX) {
    this.#s3 = s3;
    this.#listPagesMax = listPagesMax;
    this.#uploads = new S3Uploads(s3);
  }

  async open(at: StoredName, { signal }: OpenOptions): Promise<StoredNar | undefined> {
    const object = await this.#find(at, signal);
    return object && new OpenS3Nar(this.#s3, object);
  }

  async put(at: StoredName, path: string): Promise<Seal> {
    const seal = await this.#send(at, path);
    await Deno.remove(path);
    return seal;
  }

  async remove(at: StoredName): Promise<boolean> {
    // The answer to a removal does not say whether there was an object.
    const wasPresent = await this.#find(at) !== undefined;
    const { client, bucket } = this.#s3;
    try {
      if (!wasPresent) {
        // A put may have died before its end.
        await this.#uploads.abandon(keyOf(at));
        return false;
      }
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: keyOf(at) }));
      return true;
    } catch (error) {
      // Another member was faster, and this store says so.
      if (isNoSuchKey(error)) return false;
      throw s3Failure("remove NAR file", error);
    }
  }

  async *list(prefix: string, { sizes = false }: ListOptions = {}): AsyncIterable<ListedNar> {
    const { client, bucket } = this.#s3;
    const pages = paginateListObjectsV2({ client }, {
      Bucket: bucket,
      Prefix: NAR_PREFIX + prefix,
    });
    let count = 0;
    try {
      for await (const { Contents = [] } of pages) {
        if (++count > this.#listPagesMax) throw new Error("its list has no end");
        for (const { Key = "", Size: fileSize } of Contents) {
          const at = parseStoredName(Key.slice(NAR_PREFIX.length));
          if (at === undefined) continue;
          if (!sizes) yield { at };
          else if (fileSize === undefined) throw new Error("a listed object has no size");
          else yield { at, fileSize };
        }
      }
    } catch (error) {
      throw s3Failure("list NAR files", error);
    }
  }

  async locate(at: StoredName, validMs: number): Promise<URL> {
    const { client, bucket } = this.#s3;
    try {
      const command = new GetObjectCommand({ Bucket: bucket, Key: keyOf(at) });
      // The store's clock decides if the URL is valid. The client knows it from earlier answers.
      const signingDate = new Date(clock.wallMs() + client.config.systemClockOffset);
      const options = { expiresIn: validMs / 1_000, signingDate };
      return new URL(await getSignedUrl(client, command, options));
    } catch (error) {
      throw s3Failure("sign the URL of a NAR file", error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#s3.client.destroy();
  }

  async #send(at: StoredName, path: string): Promise<Seal> {
    using file = await Deno.open(path);
    const { size: fileSize } = await file.stat();
    try {
      return s3SealOf(at, await this.#uploads.send(keyOf(at), file, fileSize), fileSize);
    } catch (error) {
      // The last answer may be lost. Nobody else puts an object of this name.
      const object = await this.#find(at).catch(() => undefined);
      if (object?.fileSize === fileSize) return object.seal;
      throw error instanceof Failure ? error : s3Failure("write NAR file", error);
    }
  }

  /** `undefined` means certainly absent. */
  async #find(at: StoredName, signal?: AbortSignal): Promise<S3Object | undefined> {
    signal?.throwIfAborted();
    const { client, bucket } = this.#s3;
    using deadline = clock.deadline(OPEN_MAX_MS);
    const { signal: late } = deadline;
    using either = new EitherSignal(late, ...signal === undefined ? [] : [signal]);
    const abortSignal = either.signal;
    const names = { Bucket: bucket, Key: keyOf(at) };
    try {
      return s3Object(at, await client.send(new HeadObjectCommand(names), { abortSignal }));
    } catch (error) {
      signal?.throwIfAborted();
      if (!isNotFound(error)) throw s3Failure("open NAR file", late.aborted ? late.reason : error);
    }
    // The answer to HEAD has no body: a missing bucket would look like a missing object.
    const { Body } = await client.send(new GetObjectCommand(names), { abortSignal })
      .catch((error) => {
        if (isNoSuchKey(error)) return { Body: undefined };
        signal?.throwIfAborted();
        throw s3Failure("open NAR file", late.aborted ? late.reason : error);
      });
    if (Body === undefined) return undefined;
    await Body.transformToWebStream().cancel();
    throw s3Failure("open NAR file", new Error("the S3 store contradicts itself"));
  }
}
