import { LocalMarks } from "../../storage/local/local_marks.ts";
import { LocalNarStore } from "../../storage/local/local_nar_store.ts";
import type { NarLocator, NarStore } from "../../storage/nar_store.ts";
import type { StorageMarks } from "../../storage/storage_mark.ts";
import type { S3Meter, S3Place } from "../../storage/s3/s3_access.ts";
import { traced, type Tracer } from "../../telemetry/tracer.ts";

/** The place of the NAR files. A message to a Worker can hold it. */
export type NarPlace =
  | { readonly kind: "local"; readonly folder: string }
  | { readonly kind: "s3"; readonly s3: S3Place };

export interface NarBackEnd extends AsyncDisposable {
  readonly nars: NarStore;
  readonly marks: StorageMarks;
  /** `undefined` where other programs cannot read the store. */
  readonly locator: NarLocator | undefined;
  /** How long a removed object must stay for readers that have found it. */
  readonly graceMs: number;
}

/** Grace time from HEAD or a redirect to the first byte. S3 sends a running GET whole. */
const S3_GRACE_MS = 1_000;

/** The store of the NAR files. A `tracer` follows each operation of S3, a `meter` counts it. */
export async function openNars(
  place: NarPlace,
  tracer?: Tracer,
  meter?: S3Meter,
): Promise<NarBackEnd> {
  if (place.kind === "local") {
    const nars = new LocalNarStore(place.folder);
    const marks = new LocalMarks(place.folder);
    return {
      nars,
      marks,
      locator: undefined,
      graceMs: 0,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  const modules = await Promise.all([s3Access(), s3NarStore(), s3Marks()]);
  const [{ openS3 }, { S3NarStore }, { S3Marks }] = modules;
  const s3 = openS3(place.s3, meter);
  const nars = new S3NarStore(s3);
  const marks = new S3Marks(s3);
  let locator: NarLocator = nars;
  if (tracer !== undefined) {
    const { presignSpan, traceS3 } = await tracedS3();
    traceS3(s3, tracer);
    locator = traced<NarLocator>(nars, tracer, { locate: presignSpan(s3.bucket) });
  }
  const dispose = () => nars[Symbol.asyncDispose]();
  return { nars, marks, locator, graceMs: S3_GRACE_MS, [Symbol.asyncDispose]: dispose };
}

/**
 * Throws a Failure that says how to make the place of NAR files usable. False while a store does
 * not answer.
 */
export async function checkNars(place: NarPlace): Promise<boolean> {
  // The start makes and checks directories with the others.
  if (place.kind === "local") return true;
  const [{ openS3 }, { checkBucket }] = await Promise.all([s3Access(), bucketChecks()]);
  const s3 = openS3(place.s3);
  try {
    return await checkBucket(s3);
  } finally {
    s3.client.destroy();
  }
}

// A local storage does not need the SDK, which takes 25 MB. A literal import takes 11 MB even where
// it never runs, as Deno parses the SDK for its module graph. So larder loads these by name, and
// scripts/compile.ts includes each.
const S3_FOLDER = "../../storage/s3";

function s3Access(): Promise<typeof import("../../storage/s3/s3_access.ts")> {
  return import(`${S3_FOLDER}/s3_access.ts`);
}

function s3NarStore(): Promise<typeof import("../../storage/s3/s3_nar_store.ts")> {
  return import(`${S3_FOLDER}/s3_nar_store.ts`);
}

function s3Marks(): Promise<typeof import("../../storage/s3/s3_marks.ts")> {
  return import(`${S3_FOLDER}/s3_marks.ts`);
}

function tracedS3(): Promise<typeof import("../../storage/s3/traced_s3.ts")> {
  return import(`${S3_FOLDER}/traced_s3.ts`);
}

function bucketChecks(): Promise<typeof import("../../storage/s3/check_bucket.ts")> {
  return import(`${S3_FOLDER}/check_bucket.ts`);
}
