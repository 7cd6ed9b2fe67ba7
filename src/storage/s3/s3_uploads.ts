import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import pLimit from "p-limit";
import { FilePart } from "./file_part.ts";
import type { S3Access } from "./s3_access.ts";
import { isNotFound } from "./s3_failures.ts";

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
export class S3Uploads {
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
