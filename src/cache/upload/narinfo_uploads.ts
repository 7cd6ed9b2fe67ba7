import { Failure, messageOf } from "../../base/failure.ts";
import {
  type ChangeWriter,
  type KeptFile,
  type NarFinder,
  type NarinfoFinder,
  type NarinfoRow,
  type NarRecord,
  Outdated,
} from "../../metadata/metadata_store.ts";
import { fingerprintOf } from "../../nix/fingerprint.ts";
import { formatSha256, type Sha256 } from "../../nix/hash.ts";
import { hashOf, type NarName, narName as plainName, parseNarName } from "../../nix/nar_name.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { formatNarinfo } from "../../nix/narinfo_format.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import { withSignatures } from "../../nix/narinfo_signatures.ts";
import type { PublicKey } from "../../nix/signature.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";
import { clock } from "../../runtime/current.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { formerFile } from "../forms/recompressed.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { Requester } from "../nar/nar_answer.ts";
import { narUrlOf, ownNarRowOf } from "../nar/nar_naming.ts";
import type { NegativeCache, Signer } from "../narinfo/serve_narinfo.ts";
import type { Touches } from "../touches.ts";
import { ownNames } from "./nar_uploads.ts";
import type { SignedPaths } from "./signed_paths.ts";
import { outcomeOf, type UploadOutcome, UploadRefused } from "./upload_body.ts";

/** Others write the same narinfo between reading and writing it no more often. */
const TRIES_MAX = 5;

/** Each is a row. The largest of nixpkgs have some thousand. */
const UPLOAD_REFERENCES_MAX = 10_000;

/** Reading, sorting or writing this many takes a millisecond. */
const MANY_REFERENCES = 1_000;

/** A path may have thousands of references. */
const LINE_LENGTH_MAX = 2_000;

interface NarinfoUploadsDeps {
  /** The rows of narinfos, and the signature that goes below each. */
  readonly rows: {
    readonly metadata: ChangeWriter & NarinfoFinder & Pick<NarFinder, "findNar">;
    readonly signer: Signer;
  };
  readonly entries: StoredEntries;
  readonly trust: Pick<UploadTrust, "refusal" | "isSigned">;
  readonly signedPaths: Pick<SignedPaths, "compared" | "remembered">;
  readonly negative: Pick<NegativeCache, "remove">;
  readonly nowMs: () => number;
  /** Called when an entry was added. */
  readonly changed: () => void;
  readonly log: Logger;
}

interface NarinfoUpload {
  readonly storePathHash: StorePathHash;
  readonly text: string;
  readonly requester: Requester;
  /** Default: now. */
  readonly usedAtMs?: number;
  /** False: no trusted key has signed it, so larder must not. Default: true. */
  readonly trusted?: boolean;
}

/** Takes uploaded narinfos whose NAR files are here. */
export class NarinfoUploads {
  readonly #deps: NarinfoUploadsDeps;

  constructor(deps: NarinfoUploadsDeps) {
    this.#deps = deps;
  }

  /** Resolves when the narinfo is durable, or refused. */
  async accept(upload: NarinfoUpload): Promise<UploadOutcome> {
    return await outcomeOf(async () => {
      const narinfo = parsed(upload);
      await turnFor(narinfo);
      const untrusted = this.#deps.trust.refusal(narinfo);
      if (untrusted !== undefined) throw new UploadRefused("invalid", untrusted);
      await turnFor(narinfo);
      for (let left = TRIES_MAX;; left--) {
        try {
          const outcome = await this.#accept(narinfo, upload);
          // Upstreams lack it, and it is here now.
          this.#deps.negative.remove(narinfo.storePathHash);
          return outcome;
        } catch (error) {
          if (!(error instanceof Outdated) || left === 1) throw error;
        }
      }
    });
  }

  async #accept(narinfo: Narinfo, upload: NarinfoUpload): Promise<UploadOutcome> {
    const { requester } = upload;
    const { rows: { metadata }, entries: { touches } } = this.#deps;
    const { storePathHash } = narinfo;
    const isSigned = this.#isSigned(narinfo, upload);
    let row = await metadata.findNarinfo(storePathHash);
    if (row === undefined && !isSigned) {
      row = await this.#deps.signedPaths.compared(narinfo, requester.requestId);
    }
    await turnFor(narinfo);
    const known = row && parseNarinfo(row.body);
    await turnFor(narinfo);
    if (known !== undefined && fingerprintOf(known) !== fingerprintOf(narinfo)) {
      throw new UploadRefused("conflict", conflictLine(known, narinfo));
    }
    const here = row && await this.#keptOf(await this.#find(row.narName), requester);
    if (row !== undefined && known !== undefined && here !== undefined) {
      touches.narinfo(storePathHash);
      const merged = withSignatures(known, narinfo);
      return await this.#write({ ...upload, row, narinfo: merged, from: here, isSigned });
    }
    const find = async (name: NarRecord["name"]) => this.#keptOf(await this.#find(name), requester);
    const from = await uploadedNar(narinfo, find);
    const merged = known === undefined ? narinfo : withSignatures(narinfo, known);
    const outcome = await this.#write({ ...upload, row, narinfo: merged, from, isSigned });
    this.#deps.log.info("narinfo uploaded", {
      path: narinfo.baseName,
      nar: from.nar.name,
      request_id: requester.requestId,
    });
    return outcome;
  }

  /** True where a trusted key vouches for the narinfo, not only its sender. */
  #isSigned(narinfo: Narinfo, { trusted }: NarinfoUpload): boolean {
    return trusted ?? this.#deps.trust.isSigned(narinfo);
  }

  #find(narName: NarRecord["name"]): Promise<NarRecord | undefined> {
    return this.#deps.rows.metadata.findNar(narName, { fresh: true });
  }

  /** `undefined` where the file is missing or damaged. */
  async #keptOf(
    nar: NarRecord | undefined,
    requester: Requester,
  ): Promise<UploadedNar | undefined> {
    const kept = nar && await keptFile(this.#deps.entries, nar, requester);
    return nar && kept && { nar, kept };
  }

  /** Throws Outdated where narinfo or NAR file have changed since they were read. */
  async #write(write: NarinfoWrite): Promise<UploadOutcome> {
    const { rows: { metadata, signer }, nowMs, entries: { reads }, changed } = this.#deps;
    const { row: before, narinfo, from, isSigned, usedAtMs = nowMs() } = write;
    const trusted = (write.trusted ?? true) || (before?.trusted ?? false);
    const { nar: { kept: _, ...nar }, kept } = from;
    const { storePathHash } = narinfo;
    const ownSignature = trusted ? signer.sign(narinfo) : undefined;
    const body = formatNarinfo(narinfo, {
      url: narUrlOf(nar.name),
      withoutSignature: ownSignature?.text,
      file: { hasHash: true, fileSize: formerFile(nar, kept).fileSize },
    });
    if (body === before?.body && nar.name === before.narName) return { kind: "known" };
    await turnFor(narinfo);
    const signed = ownSignature === undefined ? {} : { ownSignature };
    const row = { storePathHash, body, narName: nar.name, trusted, ...signed };
    const signedFacts = trusted ? [this.#deps.signedPaths.remembered(narinfo, isSigned)] : [];
    const references = [...new Set(narinfo.references.map(hashOfBaseName))];
    await turnFor(narinfo);
    const end = reads.begin(nar.name);
    try {
      await metadata.apply([{
        kind: "put-narinfo",
        ...{ row, references, nar, sources: [] },
        atMs: usedAtMs,
        onlyIf: { body: before?.body, at: kept.at },
      }, ...signedFacts]);
    } finally {
      end();
    }
    changed();
    return { kind: "stored" };
  }
}

interface NarinfoWrite extends Pick<NarinfoUpload, "usedAtMs" | "trusted"> {
  /** The row as read. */
  readonly row: NarinfoRow | undefined;
  readonly narinfo: Narinfo;
  readonly from: UploadedNar;
  readonly isSigned: boolean;
}

function parsed({ text, storePathHash }: NarinfoUpload): Narinfo {
  let narinfo: Narinfo;
  try {
    narinfo = parseNarinfo(text);
  } catch (error) {
    throw new UploadRefused("invalid", `expected a narinfo: ${messageOf(error)}`);
  }
  if (narinfo.references.length > UPLOAD_REFERENCES_MAX) {
    const { length } = narinfo.references;
    const line = `expected at most ${UPLOAD_REFERENCES_MAX} references, got ${length}`;
    throw new UploadRefused("invalid", line);
  }
  if (narinfo.storePathHash === storePathHash) return narinfo;
  const line = `expected a StorePath with ${storePathHash}, got ${narinfo.storePath}`;
  throw new UploadRefused("invalid", line);
}

/** Requests come between two steps of a narinfo with many references. */
async function turnFor({ references }: Narinfo): Promise<void> {
  if (references.length > MANY_REFERENCES) await clock.turn();
}

function conflictLine(known: Narinfo, narinfo: Narinfo): string {
  const { narHash, narSize, references } = known;
  let expected = `References: ${references.join(" ")}`;
  if (narHash !== narinfo.narHash) expected = `NarHash sha256:${narHash}`;
  else if (narSize !== narinfo.narSize) expected = `NarSize: ${narSize}`;
  const shown = expected.length > LINE_LENGTH_MAX
    ? `${expected.slice(0, LINE_LENGTH_MAX)}…`
    : expected.trimEnd();
  return `expected ${shown}, as this path is here with it`;
}

/** A kept NAR file, and its row. */
export interface UploadedNar {
  readonly nar: NarRecord;
  readonly kept: KeptFile;
}

/** Finds a file that is kept and undamaged. */
type FindKeptNar = (narName: NarName) => Promise<UploadedNar | undefined>;

const URL_REGEXP = /^nar\/([^/?#]+)$/;

/**
 * The kept NAR file of an uploaded narinfo. Throws UploadRefused where it is not here, or where the
 * narinfo contradicts the measured facts.
 */
export async function uploadedNar(narinfo: Narinfo, find: FindKeptNar): Promise<UploadedNar> {
  const name = parseNarName(URL_REGEXP.exec(narinfo.url)?.[1] ?? "");
  if (name === undefined) {
    throw refused("expected URL: nar/ and the name of an uploaded NAR file");
  }
  for (const candidate of candidates(narinfo, name)) {
    const found = await find(candidate);
    if (found === undefined) continue;
    if (formerFile(found.nar, found.kept).fileHash !== hashOf(name)) continue;
    check(narinfo, found);
    return found;
  }
  throw refused(`expected ${narinfo.url} before its narinfo, and it is not here`);
}

/** Our names of the file, and the one that a NAR gets where another narinfo claims those. */
function candidates(narinfo: Narinfo, url: NarName): readonly NarName[] {
  const { narHash, narSize, fileHash, fileSize, compression } = narinfo;
  if (fileHash === undefined || fileSize === undefined) return ownNames(url);
  const name = plainName(hashOf(url), compression);
  const row = { name, compression, narHash, narSize, fileHash, fileSize };
  return [...ownNames(url), ownNarRowOf(row).name];
}

function check(narinfo: Narinfo, { nar, kept }: UploadedNar): void {
  const { compression, fileHash, fileSize, narHash, narSize } = narinfo;
  const former = formerFile(nar, kept);
  const facts: readonly (readonly [field: string, said: unknown, found: unknown])[] = [
    ["Compression", compression, nar.compression],
    ["FileHash", shown(fileHash ?? former.fileHash), shown(former.fileHash)],
    ["FileSize", fileSize ?? former.fileSize, former.fileSize],
    ["NarHash", formatSha256(narHash), formatSha256(nar.narHash)],
    ["NarSize", narSize, nar.narSize],
  ];
  for (const [field, said, found] of facts) {
    if (said !== found) throw refused(`expected ${field}: ${found}, got ${said}`);
  }
}

function refused(line: string): UploadRefused {
  return new UploadRefused("invalid", line);
}

function shown(hash: Sha256 | undefined): string | undefined {
  return hash && formatSha256(hash);
}

/** Stored entries: opens them, protects reads from eviction, and notes their use. */
export interface StoredEntries {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
  readonly touches: Pick<Touches, "narinfo" | "nar" | "document">;
}

/** The file of the row, if it is stored and undamaged. */
export async function keptFile(
  { kept }: Pick<StoredEntries, "kept">,
  nar: NarRecord,
  { requestId, client }: Requester,
): Promise<KeptFile | undefined> {
  const file = await kept.open(nar, requestId, client);
  await file?.stored[Symbol.asyncDispose]();
  return file?.kept;
}

/**
 * Opens NAR files for clients that push, which skip what is here: bytes in memory are no proof.
 * Throws while the store does not answer. A client retries after a 503, and gives up when a file is
 * missing.
 */
export function openForPush(kept: Pick<KeptNars, "find">): Pick<KeptNars, "open"> {
  return {
    async open(nar, requestId, options) {
      try {
        return await kept.find(nar, requestId, { signal: options.signal, fresh: true });
      } catch (error) {
        if (!(error instanceof Failure) || error.kind !== "unavailable") throw error;
        throw new Failure("overloaded", error.message, error.facts, error);
      }
    },
  };
}

interface UploadTrustSettings {
  /** Keys of which one must have signed each upload. */
  readonly uploadKeys: readonly PublicKey[];
  /** Keys of upstreams: they authorize no upload, but vouch for its facts. */
  readonly upstreamKeys: readonly PublicKey[];
  /** True: without upload keys larder refuses every upload. */
  readonly requireSignature: boolean;
  /** True where an upload needs a token: its client is trusted. */
  readonly hasWriteToken: boolean;
}

const NO_KEY = "expected a signature of a trusted upload key, and none is set";
const NO_TOKEN = "expected a write token or a signature by --cache-trusted-upload-key, " +
  "and none is set";

/** Rules of trusted uploads, beside their tokens. */
export class UploadTrust {
  readonly #keys: TrustedKeys | undefined;
  readonly #allKeys: TrustedKeys;
  readonly #line: string;
  /** The reason why larder refuses every upload; `undefined` if it may accept some. */
  readonly closed: string | undefined;

  constructor(settings: UploadTrustSettings) {
    const { uploadKeys, upstreamKeys, requireSignature, hasWriteToken } = settings;
    const needsKey = uploadKeys.length > 0 || requireSignature;
    this.#keys = needsKey ? new TrustedKeys(uploadKeys) : undefined;
    this.#allKeys = new TrustedKeys([...uploadKeys, ...upstreamKeys]);
    this.#line = `expected a signature of ${namesOf(uploadKeys)}`;
    // An upstream signs for everybody, so its key says nothing about the uploader.
    if (uploadKeys.length > 0) this.closed = undefined;
    else if (requireSignature) this.closed = NO_KEY;
    else this.closed = hasWriteToken ? undefined : NO_TOKEN;
  }

  /** True where a trusted key has signed the narinfo. */
  isSigned(narinfo: Narinfo): boolean {
    return this.#allKeys.signerOf(narinfo) !== undefined;
  }

  /** The signature that the narinfo lacks, for the answer; `undefined` if it is trusted. */
  refusal(narinfo: Narinfo): string | undefined {
    if (this.closed !== undefined) return this.closed;
    if (this.#keys === undefined || this.#keys.signerOf(narinfo) !== undefined) return undefined;
    return this.#line;
  }
}

function namesOf(keys: readonly PublicKey[]): string {
  return [...new Set(keys.map(({ name }) => name))].join(" or ");
}
