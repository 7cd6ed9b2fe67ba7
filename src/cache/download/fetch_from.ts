import { Failure } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { Download } from "./download.ts";
import { Mismatch } from "./mismatch.ts";
import type { FetchEvent, FetchOrder, NarFetcher } from "./nar_fetcher.ts";
import type { NarMeasure, NarVerifier, Verification } from "../verify/nar_verifier.ts";

export interface FetchFromDeps {
  readonly fetcher: NarFetcher;
  readonly verifier: NarVerifier;
}

/** A NAR file that is here whole. */
export interface FetchedFile extends Disposable {
  readonly fileSize: number;
  /** SHA-256 of the file. */
  readonly digest: Uint8Array;
  /** What the file holds when it is decompressed. */
  measure(): Promise<NarMeasure>;
}

type FetchEnd = Exclude<FetchEvent, { type: "opened" | "bytes" }>;

/**
 * Fetches a NAR file from one upstream into the download. `undefined` when the upstream does not
 * have it; throws when the fetch broke. The download hears of the upstream's answer with the
 * first bytes, so that until then another upstream can be asked.
 */
export async function fetchFrom(
  { fetcher, verifier }: FetchFromDeps,
  download: Download,
  nar: NarRow,
  { upstream, location }: NarSource,
): Promise<FetchedFile | undefined> {
  const { path } = download.file;
  const { compression, narSize } = nar;
  const startVerifying = () => verifier.start({ path, compression, narSizeMax: narSize });
  // Without a file hash the readers wait for the NAR hash: it is taken on the way.
  let verification: Verification | undefined;
  if (nar.fileHash === undefined && compression !== "none") verification = startVerifying();

  const order: FetchOrder = {
    path,
    upstream,
    location,
    ...(nar.fileSize === undefined ? {} : { fileSize: nar.fileSize }),
    fileSizeMax: nar.fileSize ?? fileSizeLimit(nar),
  };
  const end = await receive(fetcher, order, download, (received) => {
    verification?.grown(received, false);
  });
  if (end.type !== "end") {
    verification?.[Symbol.dispose]();
    if (end.type === "absent") return undefined;
    if (end.reason === "size") throw new Mismatch("file_size", end.detail);
    const kind = end.reason === "disk" ? "broken" : "upstream-down";
    throw new Failure(kind, `Cannot fetch NAR: ${end.detail}`, { reason: end.reason });
  }
  return {
    fileSize: end.fileSize,
    digest: end.digest,
    async measure() {
      verification ??= startVerifying();
      verification.grown(end.fileSize, true);
      return await verification.measure;
    },
    [Symbol.dispose]: () => verification?.[Symbol.dispose](),
  };
}

function receive(
  fetcher: NarFetcher,
  order: FetchOrder,
  download: Download,
  grown: (received: number) => void,
): Promise<FetchEnd> {
  let announced: { readonly fileSize?: number } | undefined;
  const begin = () => {
    if (announced !== undefined) download.advance({ type: "opened", ...announced });
    announced = undefined;
  };
  return new Promise((resolve) => {
    fetcher.fetch(order, (event) => {
      switch (event.type) {
        case "opened": {
          const fileSize = order.fileSize ?? event.fileSize;
          announced = fileSize === undefined ? {} : { fileSize };
          return;
        }
        case "bytes":
          begin();
          download.advance(event);
          return grown(event.received);
        case "end":
          begin();
          return resolve(event);
        case "absent":
        case "failed":
          return resolve(event);
      }
    });
  });
}

/** No compression makes a file much larger than what it holds. */
function fileSizeLimit({ compression, narSize }: NarRow): number {
  return compression === "none" ? narSize : narSize + Math.ceil(narSize / 8) + 65_536;
}
