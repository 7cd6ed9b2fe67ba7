import type { SentDocument } from "../../cache/documents/document_answer.ts";
import { DOCUMENT_RULES } from "../../cache/documents/document_rules.ts";
import type { DocumentServer } from "../../cache/documents/serve_document.ts";
import { type DocumentKind, documentName } from "../../nix/document_name.ts";
import {
  type Answer,
  type AnswerParts,
  type ClientRequest,
  headAnswer,
  isNamed,
  notModifiedAnswer,
  statusAnswer,
  streamAnswer,
} from "../message/message.ts";
import type { Handler, Route } from "./router.ts";

/** The paths of each kind of document. */
export const DOCUMENT_PATHS:
  readonly (readonly [name: string, path: RegExp, kind: DocumentKind])[] = [
    ["/{hash}.ls", /^\/([^/]*)\.ls$/, "listing"],
    ["/log/{drv}", /^\/log\/([^/]*)$/, "log"],
    [
      "/build-trace-v2/{drv}/{output}.doi",
      /^\/build-trace-v2\/([^/]*)\/([^/]*)\.doi$/,
      "build-trace",
    ],
    ["/realisations/{id}.doi", /^\/realisations\/([^/]*)\.doi$/, "realisation"],
    ["/debuginfo/{id}", /^\/debuginfo\/([^/]*)$/, "debuginfo"],
  ];

/** All other documents of a binary cache; 404 for one that larder cannot serve. */
export function documentRoutes(documents: Pick<DocumentServer, "serve">): readonly Route[] {
  return DOCUMENT_PATHS.map(([name, path, kind]) => (
    { name, path, cached: true, inPieces: true, methods: { GET: documentHandler(documents, kind) } }
  ));
}

function documentHandler(documents: Pick<DocumentServer, "serve">, kind: DocumentKind): Handler {
  return async ({ params, request, requestId, head }) => {
    const name = documentName(kind, params);
    if (name === undefined) return statusAnswer(404, head, { "x-cache": "HIT" });
    const { cacheResult, document } = await documents.serve(name, requestId);
    if (document === undefined) return statusAnswer(404, head, { "x-cache": cacheResult });
    return documentAnswer(request, document, { type: DOCUMENT_RULES[kind].type, cacheResult });
  };
}

/** The answer to GET or HEAD of a document. */
export function documentAnswer(
  { method, headers: requestHeaders }: Pick<ClientRequest, "method" | "headers">,
  document: SentDocument,
  origin: Origin,
): Answer {
  const parts = partsOf(document, origin);
  const { tag } = document;
  if (tag !== undefined && isNamed(requestHeaders.get("if-none-match"), `"${tag}"`)) {
    document[Symbol.dispose]();
    const { "content-length": _, ...headers } = parts.headers ?? {};
    return notModifiedAnswer({ ...parts, headers });
  }
  if (method !== "HEAD") return streamAnswer(document.body(), parts);
  document[Symbol.dispose]();
  return headAnswer(parts);
}

interface Origin {
  readonly type: string;
  readonly cacheResult: string;
}

function partsOf(document: SentDocument, { type, cacheResult }: Origin): AnswerParts {
  const { encoding, bodyBytes, tag, mayChange } = document;
  return {
    status: 200,
    type,
    lifetime: mayChange ? "changing" : "document",
    headers: {
      "x-cache": cacheResult,
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
      ...(bodyBytes === undefined ? {} : { "content-length": String(bodyBytes) }),
      ...(tag === undefined ? {} : { etag: `"${tag}"` }),
    },
  };
}
