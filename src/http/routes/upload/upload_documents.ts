import { DOCUMENT_RULES } from "../../../cache/documents/document_rules.ts";
import { contentCoding, UploadRefused } from "../../../cache/upload/upload_body.ts";
import type { DocumentUploads } from "../../../cache/upload/document_uploads.ts";
import type { StoredView } from "../../../cache/upload/stored_view.ts";
import { type DocumentKind, documentName } from "../../../nix/document_name.ts";
import { statusAnswer } from "../../message/message.ts";
import { DOCUMENT_PATHS, documentAnswer } from "../documents.ts";
import type { Handler, Route } from "../router.ts";
import { uploadBodyOf, uploadHandler, type UploadHandlerDeps } from "./upload_answer.ts";

export interface UploadDocumentsDeps {
  readonly handling: UploadHandlerDeps;
  readonly stored: Pick<StoredView, "document">;
  /** `undefined` unless uploads are allowed. */
  readonly uploads: Pick<DocumentUploads, "accept"> | undefined;
}

/** Listings, logs, build traces, realisations and debuginfo of a push. */
export function uploadDocumentRoutes(deps: UploadDocumentsDeps): readonly Route[] {
  return DOCUMENT_PATHS.map(([name, path, kind]) => ({
    name: `/upload${name}`,
    path: new RegExp(path.source.replace("^", "^\\/upload")),
    inPieces: true,
    methods: { GET: readHandler(deps, kind), ...writeHandler(deps, kind) },
  }));
}

function readHandler({ stored }: UploadDocumentsDeps, kind: DocumentKind): Handler {
  return async ({ params, request, head }) => {
    const name = documentName(kind, params);
    const document = name && await stored.document(name);
    if (document === undefined) return statusAnswer(404, head, { "x-cache": "MISS" });
    return documentAnswer(request, document, {
      type: DOCUMENT_RULES[kind].type,
      cacheResult: "HIT",
    });
  };
}

function writeHandler(
  { uploads, handling }: UploadDocumentsDeps,
  kind: DocumentKind,
): { readonly PUT?: Handler } {
  if (uploads === undefined) return {};
  const accept: Parameters<typeof uploadHandler>[2] = async ({ params, request }) => {
    const name = documentName(kind, params);
    if (name === undefined) throw new UploadRefused("invalid", `expected the name of a ${kind}`);
    const coding = contentCoding(request.headers.get("content-encoding"));
    return await uploads.accept({
      ...{ name, coding, client: request },
      body: uploadBodyOf(request),
    });
  };
  return { PUT: uploadHandler(handling, "document", accept) };
}
