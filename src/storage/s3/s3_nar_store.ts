import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  paginateListObjectsV2,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import pLimit from "p-limit";
import { EitherSignal } from "../../base/either_signal.ts";
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
import { FilePart } from "./file_part.ts";
import { OpenS3Nar } from "./open_s3_nar.ts";
import type { S3Access } from "./s3_access.ts";
import { isNoSuchKey, isNotFound, s3Failure } from "./s3_failures.ts";
import { keyOf, NAR_PREFIX, type S3Object, s3Object, s3SealOf } from "./s3_object.ts";

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

/** Content type, for clients that read from the store themselves. */
const TYPE = "application/x-nix-nar";

/** Larger files go in parts of this size. S3 takes no smaller ones. */
const PART_BYTES = 5 << 20;

/** S3 takes no more. The parts of a file above 50 GB are larger. */
const PARTS_MAX = 10_000;

/** Bodies of all files that are sent side by side. */
const BODIES_AT_ONCE = 2;

/** Files up to this size do not wait for parts of large ones. */
const SMALL_BYTES = 512 * 1024;
const SMALL_AT_ONCE = 16;

interface Upload {
  readonly key: string;
  readonly uploadId: string;
}

/** Writes files into the bucket, each as one object that appears whole. */
class S3Uploads {
  readonly #s3: S3Access;
  readonly #bodies = pLimit(BODIES_AT_ONCE);
  readonly #smallBodies = pLimit(SMALL_AT_ONCE);

  constructor(s3: S3Access) {
    this.#s3 = s3;
  }

  /** Resolves to the object's ETag. */
  async send(key: string, file: Deno.FsFile, fileSize: number): Promise<string> {
    const { ETag } = fileSize <= PART_BYTES
      ? await this.#sendWhole(key, file, fileSize)
      : await this.#sendParts(key, file, fileSize);
    if (ETag === undefined) throw new Error("the S3 store sent no ETag");
    return ETag;
  }

  /** Removes the parts of uploads to this key that were begun and have not ended. */
  async abandon(key: string): Promise<void> {
    const { client, bucket } = this.#s3;
    const { Uploads = [] } = await client.send(
      new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: key }),
    );
    for (const { Key, UploadId } of Uploads) {
      if (Key !== key) continue;
      const names = { Bucket: bucket, Key, UploadId };
      await client.send(new AbortMultipartUploadCommand(names)).catch((error) => {
        // Another member was faster.
        if (!isNotFound(error)) throw error;
      });
    }
  }

  async #sendWhole(key: string, file: Deno.FsFile, fileSize: number) {
    const { client, bucket } = this.#s3;
    const names = { Bucket: bucket, Key: key, ContentType: TYPE };
    const atOnce = fileSize <= SMALL_BYTES ? this.#smallBodies : this.#bodies;
    // Deno sends no length for an empty stream.
    const body = fileSize === 0 ? new Uint8Array() : new FilePart(file, 0, fileSize);
    return await atOnce(() => client.send(new PutObjectCommand({ ...names, Body: body })));
  }

  async #sendParts(key: string, file: Deno.FsFile, fileSize: number) {
    const { client, bucket } = this.#s3;
    const names = { Bucket: bucket, Key: key };
    const { UploadId: uploadId, $metadata: { attempts = 1 } } = await client.send(
      new CreateMultipartUploadCommand({ ...names, ContentType: TYPE }),
    );
    if (uploadId === undefined) throw new Error("the S3 store sent no id of the upload");
    // Where this throws, the caller removes the object, and with it the parts.
    const Parts = await this.#sendEach({ key, uploadId }, file, fileSize);
    const end = { ...names, UploadId: uploadId, MultipartUpload: { Parts } };
    const ended = await client.send(new CompleteMultipartUploadCommand(end));
    // An answer with another id may be lost.
    if (attempts > 1) await this.abandon(key).catch(() => undefined);
    return ended;
  }

  /** Ends only when no part is in flight. */
  async #sendEach(upload: Upload, file: Deno.FsFile, fileSize: number) {
    const partBytes = Math.max(PART_BYTES, Math.ceil(fileSize / PARTS_MAX));
    const failed = new AbortController();
    const send = async (index: number) => {
      failed.signal.throwIfAborted();
      const start = index * partBytes;
      const part = new FilePart(file, start, Math.min(fileSize, start + partBytes));
      try {
        return await this.#sendPart(upload, index + 1, part);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    };
    const partCount = Math.ceil(fileSize / partBytes);
    const sendings = Array.from({ length: partCount }, (_, index) => {
      return this.#bodies(() => send(index));
    });
    await Promise.allSettled(sendings);
    return await Promise.all(sendings);
  }

  async #sendPart({ key, uploadId }: Upload, number: number, part: FilePart) {
    const { client, bucket } = this.#s3;
    const command = new UploadPartCommand({
      Bucket: bucket,
      Key: key,
      UploadId: uploadId,
      PartNumber: number,
      Body: part,
    });
    const { ETag } = await client.send(command);
    return { PartNumber: number, ETag };
  }
}
