import { GetObjectCommand, PutObjectCommand, S3ServiceException } from "@aws-sdk/client-s3";
import { Failure } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import { formatMark, MARK_NAME, parseMark } from "../storage_mark.ts";
import type { StorageMark, StorageMarks } from "../storage_mark.ts";
import type { S3Access } from "./s3_access.ts";
import { isNoSuchKey, s3Failure } from "./s3_failures.ts";
import { NAR_PREFIX } from "./s3_object.ts";

/** The longest wait for a store that does not answer. */
const READ_MAX_MS = 5_000;

/** Another mark is there, another is being written, or the store has no conditions. */
const REFUSALS: ReadonlySet<number | undefined> = new Set([412, 409, 501]);

/** The mark of a bucket, as an object among its NAR files: its keys need no further permission. */
export class S3Marks implements StorageMarks {
  readonly #s3: S3Access;
  readonly #names: { readonly Bucket: string; readonly Key: string };

  constructor(s3: S3Access) {
    this.#s3 = s3;
    this.#names = { Bucket: s3.bucket, Key: NAR_PREFIX + MARK_NAME };
  }

  async read(): Promise<StorageMark | undefined> {
    using deadline = clock.deadline(READ_MAX_MS);
    const abortSignal = deadline.signal;
    try {
      const command = new GetObjectCommand(this.#names);
      const { Body } = await this.#s3.client.send(command, { abortSignal });
      return parseMark(await Body?.transformToString() ?? "");
    } catch (error) {
      if (isNoSuchKey(error)) return undefined;
      throw error instanceof Failure ? error : s3Failure(`read ${MARK_NAME}`, error);
    }
  }

  async claim(mark: StorageMark): Promise<StorageMark> {
    try {
      await this.#put(mark, { IfNoneMatch: "*" });
    } catch (error) {
      if (!isRefused(error)) throw s3Failure(`write ${MARK_NAME}`, error);
      const there = await this.read();
      if (there !== undefined) return there;
      await this.replace(mark);
    }
    // Some stores ignore the condition: the last writer wins there.
    return await this.read() ?? mark;
  }

  async replace(mark: StorageMark): Promise<void> {
    try {
      await this.#put(mark);
    } catch (error) {
      throw s3Failure(`write ${MARK_NAME}`, error);
    }
  }

  async #put(mark: StorageMark, condition: { readonly IfNoneMatch?: string } = {}): Promise<void> {
    const Body = new TextEncoder().encode(formatMark(mark));
    const names = { ...this.#names, ContentType: "application/json" };
    await this.#s3.client.send(new PutObjectCommand({ ...names, ...condition, Body }));
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof S3ServiceException && REFUSALS.has(error.$metadata.httpStatusCode);
}
