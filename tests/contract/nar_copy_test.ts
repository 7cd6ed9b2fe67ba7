import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { openS3 } from "../../src/storage/s3/s3_access.ts";
import { S3NarStore } from "../../src/storage/s3/s3_nar_store.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract } from "./contract.ts";
import { type CopyScene, narCopyClauses } from "./nar_copy_contract.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

type Opener = (opened: AsyncDisposableStack) => NarStore;

const folder: Opener = (opened) => new LocalNarStore(opened.use(tempFolder()).path);

const bucket: Opener = (opened) => {
  if (server === undefined) throw new Error("Cannot make a bucket: there is no server");
  return opened.use(new S3NarStore(openS3(server.bucket())));
};

async function scene(from: Opener, to: Opener): Promise<CopyScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  return {
    from: from(opened),
    to: to(opened),
    folder: opened.use(tempFolder()).path,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

checkContract(
  { name: "NarCopy, folder to folder", open: () => scene(folder, folder) },
  narCopyClauses,
);
checkContract({
  name: "NarCopy, folder to bucket",
  unavailable: S3_UNAVAILABLE,
  open: () => scene(folder, bucket),
}, narCopyClauses);
checkContract({
  name: "NarCopy, bucket to folder",
  unavailable: S3_UNAVAILABLE,
  open: () => scene(bucket, folder),
}, narCopyClauses);
