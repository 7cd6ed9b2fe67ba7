import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import pLimit from "p-limit";
import { Failure } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import { readFully } from "../../base/read_fully.ts";
import type { S3Access } from "./s3_access.ts";
import { isNotFound } from "./s3_failures.ts";

/** For clients that read from the store themselves. */
const TYPE = "application/x-nix-nar";

/** Larger files go in parts of this size. S3 takes no smaller ones than 5 MiB. */
const PART_BYTES = 8 << 20;

/** S3 takes no more. The parts of a file above 80 GB are larger. */
const PARTS_MAX = 10_000;

/** The parts of one file that are sent side by side. */
const PARTS_AT_ONCE = 2;

/** All bodies that are in memory; Deno holds a second copy of each while it sends. */
const BODY_BYTES_MAX = 16 << 20;

/** How long a body waits for the memory that others use. */
const MEMORY_WAIT_MS = 10 * 60_000;

interface Upload {
  readonly key: string;
  readonly uploadId: string;
}

/** Writes files into the bucket, each as one object that appears whole. */
export class S3Uploads {
  readonly #s3: S3Access;
  readonly #memory = new MemoryAllowance(BODY_BYTES_MAX);

  constructor(s3: S3Access) {
    this.#s3 = s3;
  }

  /** Resolves to the object's ETag. */
  async send(key: string, file: Deno.FsFile, fileSize: number): Promise<string> {
    const { ETag } = fileSize <= PART_BYTES
      ? await this.#sendWhole(key, file, fileSize)
      : await this.#sendParts(key, file, fileSize);
    if (ETag === undefined) throw new Error("the S3 store told no ETag");
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
    using body = await this.#read(file, 0, fileSize);
    const names = { Bucket: bucket, Key: key, ContentType: TYPE };
    return await client.send(new PutObjectCommand({ ...names, Body: body.bytes }));
  }

  async #sendParts(key: string, file: Deno.FsFile, fileSize: number) {
    const { client, bucket } = this.#s3;
    const names = { Bucket: bucket, Key: key };
    const { UploadId: uploadId, $metadata: { attempts = 1 } } = await client.send(
      new CreateMultipartUploadCommand({ ...names, ContentType: TYPE }),
    );
    if (uploadId === undefined) throw new Error("the S3 store told no id of the upload");
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
    const atOnce = pLimit(PARTS_AT_ONCE);
    const sendings = Array.from(
      { length: Math.ceil(fileSize / partBytes) },
      (_, index) =>
        atOnce(async () => {
          failed.signal.throwIfAborted();
          const start = index * partBytes;
          using body = await this.#read(file, start, Math.min(fileSize, start + partBytes));
          return await this.#sendPart(upload, index + 1, body.bytes);
        }).catch((error) => {
          failed.abort(error);
          throw error;
        }),
    );
    await Promise.allSettled(sendings);
    return await Promise.all(sendings);
  }

  async #sendPart({ key, uploadId }: Upload, number: number, bytes: Uint8Array<ArrayBuffer>) {
    const { client, bucket } = this.#s3;
    const command = new UploadPartCommand({
      Bucket: bucket,
      Key: key,
      UploadId: uploadId,
      PartNumber: number,
      Body: bytes,
    });
    const { ETag } = await client.send(command);
    return { PartNumber: number, ETag };
  }

  async #read(file: Deno.FsFile, start: number, end: number) {
    const share = this.#memory.share();
    // A part above the whole allowance would wait for ever.
    const takenBytes = Math.min(end - start, BODY_BYTES_MAX);
    if (!await share.takeWithin(takenBytes, MEMORY_WAIT_MS)) {
      share[Symbol.dispose]();
      throw new Failure("unavailable", "Cannot write NAR file: other files use the memory");
    }
    const bytes = new Uint8Array(end - start);
    // At once: the parts of a file share its position.
    file.seekSync(start, Deno.SeekMode.Start);
    if (readFully(file, bytes) < bytes.length) {
      share[Symbol.dispose]();
      throw new Failure("broken", "Cannot write NAR file: it became shorter");
    }
    return { bytes, [Symbol.dispose]: () => share[Symbol.dispose]() };
  }
}
