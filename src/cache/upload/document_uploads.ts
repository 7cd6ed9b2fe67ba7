import { looksLikeObject } from "../../base/json_object.ts";
import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import type { ChangeWriter, DocumentFacts, DocumentKeeper } from "../../metadata/metadata_store.ts";
import type { Codec } from "../../nix/content_encoding.ts";
import type { DocumentName, DocumentPath } from "../../nix/document_name.ts";
import { documentPieces, documentTag } from "../documents/document_bytes.ts";
import { DOCUMENT_RULES } from "../documents/document_rules.ts";
import type { NegativeCache } from "../narinfo/serve_narinfo.ts";
import type { Client } from "../nar/nar_answer.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import {
  collectBody,
  holdsObject,
  outcomeOf,
  type UploadBody,
  type UploadOutcome,
  UploadRefused,
} from "./upload_body.ts";

/** Stands for an upstream in the row of an uploaded document: larder requests it from none. */
const UPLOADED = "upload";

export interface DocumentUploadsDeps {
  readonly metadata: DocumentKeeper & ChangeWriter;
  readonly negative: Pick<NegativeCache<DocumentPath>, "remove">;
  readonly allowance: MemoryAllowance;
  readonly decoder: Pick<NarVerifier, "decode">;
  /** The limit for all kept documents together; `Infinity`: none. */
  readonly totalBytesMax: () => number;
  readonly nowMs: () => number;
}

export interface DocumentUpload {
  readonly name: DocumentName;
  readonly body: UploadBody;
  readonly client: Client;
  /** The encoding of the body, which larder keeps and serves unchanged. */
  readonly coding: Codec | "none";
}

/** Takes uploaded listings, logs, realisations, build traces and debuginfo. */
export class DocumentUploads {
  readonly #deps: DocumentUploadsDeps;

  constructor(deps: DocumentUploadsDeps) {
    this.#deps = deps;
  }

  /** Resolves when the document is durable, or refused. It replaces one of the same name. */
  async accept(upload: DocumentUpload): Promise<UploadOutcome> {
    return await outcomeOf(() => this.#accept(upload));
  }

  async #accept({ name, body, coding, client }: DocumentUpload): Promise<UploadOutcome> {
    const { metadata, negative, allowance, decoder, nowMs } = this.#deps;
    const totalBytesMax = this.#deps.totalBytesMax();
    const { path } = name;
    const rule = DOCUMENT_RULES[name.kind];
    const bytesMax = Math.min(rule.keptBytesMax, totalBytesMax);
    using collected = await collectBody(body, { bytesMax, allowance });
    const { bytes } = collected;
    const isObject = coding === "none"
      ? !rule.isJson || looksLikeObject(bytes)
      : await holdsObject(decoder, { bytes, coding, client, bytesMax: rule.keptBytesMax });
    if (rule.isJson && !isObject) {
      throw new UploadRefused("invalid", "expected one JSON object");
    }
    const document: DocumentFacts = {
      path,
      upstream: UPLOADED,
      type: rule.type,
      ...(coding === "none" ? {} : { encoding: coding }),
      tag: documentTag(bytes),
      bodyBytes: bytes.length,
      mayChange: false,
    };
    const before = await metadata.findDocument(path);
    if (before?.tag === document.tag && before.upstream === UPLOADED) return { kind: "known" };
    const pieces = documentPieces(bytes);
    await metadata.apply([{
      kind: "put-document",
      document,
      pieces,
      totalBytesMax,
      atMs: nowMs(),
    }]);
    negative.remove(path);
    if ((await metadata.findDocument(path))?.tag === document.tag) return { kind: "stored" };
    throw new UploadRefused("no-room", "expected room below the limit of documents");
  }
}
