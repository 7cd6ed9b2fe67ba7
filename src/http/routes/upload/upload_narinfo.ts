import type { MemoryAllowance } from "../../../base/memory_allowance.ts";
import {
  collectBody,
  contentCoding,
  decodedBody,
  UploadRefused,
} from "../../../cache/upload/upload_body.ts";
import type { NarinfoUploads } from "../../../cache/upload/narinfo_uploads.ts";
import type { StoredView } from "../../../cache/upload/stored_view.ts";
import type { NarVerifier } from "../../../cache/verify/nar_verifier.ts";
import { NARINFO_TEXT_MAX } from "../../../nix/narinfo_parse.ts";
import { isStorePathHash } from "../../../nix/store_path.ts";
import { statusAnswer, textAnswer } from "../../message/message.ts";
import type { Route, Routed } from "../router.ts";
import { uploadBodyOf, uploadHandler, type UploadHandlerDeps } from "./upload_answer.ts";

export interface UploadNarinfoRouteDeps {
  readonly handling: UploadHandlerDeps;
  readonly stored: Pick<StoredView, "narinfo">;
  /** `undefined` unless uploads are allowed. */
  readonly uploads: Pick<NarinfoUploads, "accept"> | undefined;
  /** Memory for the bodies, and their decoder. */
  readonly decoding: {
    readonly allowance: MemoryAllowance;
    readonly decoder: Pick<NarVerifier, "decode">;
  };
}

/** A narinfo of a push: stored by PUT, served only where its NAR file is stored, too. */
export function uploadNarinfoRoute(
  { stored, uploads, decoding, handling }: UploadNarinfoRouteDeps,
): Route {
  return {
    name: "/upload/{hash}.narinfo",
    path: { before: "/upload/", behind: ".narinfo" },
    methods: {
      async GET({ params: [text = ""], head, request, requestId }) {
        const requester = { requestId, client: request };
        const found = isStorePathHash(text) ? await stored.narinfo(text, requester) : undefined;
        if (found === undefined) return statusAnswer(404, head, { "x-cache": "MISS" });
        return textAnswer(found, head, {
          status: 200,
          type: "text/x-nix-narinfo",
          lifetime: "never",
          headers: { "x-cache": "HIT" },
        });
      },
      ...(uploads === undefined ? {} : {
        PUT: uploadHandler(handling, "narinfo", async (routed) => {
          const [storePathHash = ""] = routed.params;
          if (!isStorePathHash(storePathHash)) {
            throw new UploadRefused("invalid", "expected a store path hash: 32 nix32 characters");
          }
          const text = await textOf(routed, decoding);
          const { request: client, requestId } = routed;
          return await uploads.accept({ storePathHash, text, requester: { requestId, client } });
        }),
      }),
    },
  };
}

async function textOf(
  { request }: Routed,
  { allowance, decoder }: UploadNarinfoRouteDeps["decoding"],
): Promise<string> {
  const bytesMax = NARINFO_TEXT_MAX;
  const coding = contentCoding(request.headers.get("content-encoding"));
  using collected = await collectBody(uploadBodyOf(request), { bytesMax, allowance });
  const { bytes: sent, share } = collected;
  const encoded = { bytes: sent, bytesMax, client: request, share };
  const bytes = coding === "none" ? sent : await decodedBody(decoder, { ...encoded, coding });
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UploadRefused("invalid", "expected a narinfo in UTF-8");
  }
}
