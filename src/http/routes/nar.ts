import { PREFETCHED_HEADER } from "../../base/command_request.ts";
import type { Facts } from "../../base/failure.ts";
import type { NarAnswer, NarFacts } from "../../cache/nar/nar_answer.ts";
import type { PathRecord, StorePathNames } from "../../cache/nar/store_path_names.ts";
import type { MemberNarServer } from "../../cache/serve_member.ts";
import type { NarServer } from "../../cache/serve_nar.ts";
import { type NarName, parseNarName, parseNarReference } from "../../nix/nar_name.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import type { NarLocator } from "../../storage/nar_store.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { MEMBER_HEADER } from "../../upstream/loops.ts";
import { linkToPath } from "../../upstream/upstream.ts";
import {
  type Answer,
  type AnswerParts,
  type Body,
  type ClientRequest,
  countedAnswer,
  countedAs,
  type CountedResult,
  HandedOverAnswer,
  headAnswer,
  isByCommand,
  isNamed,
  notModifiedAnswer,
  queryIn,
  requestSeries,
  servedBytes,
  statusAnswer,
  streamAnswer,
  type UnsavedBytes,
  withoutBlanks,
} from "../message/message.ts";
import { removeHandler } from "./remove_handler.ts";
import type { Route } from "./router.ts";

export interface NarRouteDeps {
  readonly nars: Pick<NarServer, "open" | "stat" | "isKnownAbsent" | "resolve" | "pathOf">;
  /** Answers other members; `undefined`: there are none. */
  readonly members?: Pick<MemberNarServer, "open" | "stat"> | undefined;
  /** Names of store paths, for the log. */
  readonly names: Pick<StorePathNames, "of">;
  readonly metrics: Metrics;
  /** Tells the uses of larder's own commands from those of clients. */
  readonly record: Pick<PathRecord, "usedByCommand">;
  /** Handover to another server that sends stored files itself. */
  readonly handOver?: HandOver | undefined;
  /** Undefined unless clients may remove files. */
  readonly remove?: (narName: NarName) => Promise<boolean>;
}

const PREFIX = "/nar/";

/** A NAR file, or a range of it. */
export function narRoute(deps: NarRouteDeps): Route {
  const { nars, members, names, metrics, record, handOver, remove } = deps;
  const requests = requestSeries(metrics, "nar");
  const served = metrics.series("nar_served_total", {});
  const bytes = servedBytes(metrics, "nar");
  const unsavedSeries = metrics.series("unsaved_bytes_total", {});

  const counted = async <Found extends NarFacts>(
    origin: AbsenceOrigin,
    request: ClientRequest,
    pending: Promise<Found | undefined>,
  ) => {
    const orCommand = (result: CountedResult | "negative") =>
      requests[isByCommand(request) ? "command" : result];
    try {
      const found = await pending;
      if (found !== undefined) requests[countedAs(found, request)].count();
      else orCommand(origin === "HIT" ? "negative" : "MISS").count();
      return found;
    } catch (error) {
      orCommand("MISS").count();
      throw error;
    }
  };

  return {
    name: "/nar/{name}",
    path: { before: "/nar/", behind: "" },
    cached: true,
    ofPath: "nar",
    streams: true,
    inPieces: true,
    describe: (path) => describe(names, path.slice(PREFIX.length)),
    methods: {
      async GET({ params: [text = ""], request, requestId, head }) {
        const reference = parseNarReference(text, queryIn(request.url));
        if (reference === undefined) return absent("MISS", head);
        const wanted = reference.storePathHash === undefined
          ? reference
          : await nars.resolve(reference, requestId);
        const { name } = wanted;
        if (members !== undefined && request.headers.get(MEMBER_HEADER) !== null) {
          const answer = await members[head ? "stat" : "open"](name, requestId, request);
          return answer === undefined
            ? absent("MISS", head)
            : await memberAnswer(answer, request, head);
        }
        const origin = nars.isKnownAbsent(name) ? "HIT" : "MISS";
        if (head) {
          const facts = await counted(origin, request, nars.stat(wanted, requestId, request));
          if (facts === undefined) return absent(origin, head);
          // Another larder asks so, before it knows the narinfo. No other client needs it.
          const isOfLarder = request.headers.get("via") !== null;
          const path = isOfLarder ? await nars.pathOf(wanted, facts) : undefined;
          return headOf(planNar(request, facts), path && { link: linkToPath(path) });
        }
        const answer = await counted(origin, request, nars.open(wanted, requestId, request));
        if (answer === undefined) return absent(origin, head);
        const plan = planNar(request, answer);
        const result = countedAs(answer, request);
        if (result === "command") record.usedByCommand(name);
        if (plan.kind === "answered") {
          await answer[Symbol.asyncDispose]();
          return countedAnswer(plan.answer, result, name);
        }
        served.count();
        const handed = await handOver?.(answer, plan, request);
        if (handed) {
          bytes[result].add(handed.handedOverBytes);
          return countedAnswer(handed, result, name);
        }
        const body = await bodyOf(answer, plan, request);
        const unsaved = unsavedBytes(unsavedSeries, answer, result);
        const stream = { served: bytes[result], unsaved, release: answer.release };
        return countedAnswer(streamAnswer(body, plan.parts, stream), result, name);
      },
      ...(remove === undefined ? {} : { DELETE: removeHandler(parseNarName, remove) }),
    },
  };
}

function describe(
  names: Pick<StorePathNames, "of">,
  text: string,
): Facts | Promise<Facts> {
  const nar = parseNarReference(text)?.name;
  if (nar === undefined) return {};
  const factsOf = (name: string | undefined) => name === undefined ? { nar } : { nar, name };
  const name = names.of(nar);
  return name instanceof Promise ? name.then(factsOf) : factsOf(name);
}

/** "HIT": the absence is remembered. */
type AbsenceOrigin = "HIT" | "MISS";

function absent(origin: AbsenceOrigin, head: boolean): Answer {
  return statusAnswer(404, head, { "x-cache": origin });
}

function headOf(plan: NarPlan, fields?: AnswerParts["headers"]): Answer {
  if (plan.kind === "answered") return plan.answer;
  return headAnswer({ ...plan.parts, headers: { ...plan.parts.headers, ...fields } });
}

/** The counters leave it out: the other member counts its client. */
async function memberAnswer(
  answer: NarAnswer,
  request: ClientRequest,
  head: boolean,
): Promise<Answer> {
  const plan = planNar(request, answer);
  if (head || plan.kind === "answered") {
    await answer[Symbol.asyncDispose]();
    return headOf(plan);
  }
  const body = await bodyOf(answer, plan, request);
  return streamAnswer(body, plan.parts, { release: answer.release });
}

/** Reads the request's signal only for a read that waits: each signal costs time to make. */
async function bodyOf(
  answer: NarAnswer,
  { start, end }: NarPlan & { readonly kind: "bytes" },
  request: ClientRequest,
): Promise<Body> {
  const whole = await answer.whole(request);
  return whole?.subarray(start, end) ?? await answer.read(start, end, request);
}

/** The answer to a NAR request: a finished one, or bytes under a status and headers. */
export type NarPlan =
  | { readonly kind: "answered"; readonly answer: Answer }
  | {
    readonly kind: "bytes";
    readonly parts: AnswerParts;
    readonly start: number;
    /** `undefined` is the file's end. */
    readonly end: number | undefined;
  };

/** The plan for a request's headers and a file's facts; the same for GET and HEAD. */
export function planNar(request: ClientRequest, facts: NarFacts): NarPlan {
  const { fileSize, tag } = facts;
  const headers = { ...headersOf(facts), ...commandHeaders(facts, request) };
  if (tag !== undefined && isNamed(request.headers.get("if-none-match"), `"${tag}"`)) {
    const { status: _, ...parts } = partsOf(304, headers);
    return { kind: "answered", answer: notModifiedAnswer(parts) };
  }
  // Without a known size larder offers no ranges, and may send the whole file.
  if (fileSize === undefined) return bytes(partsOf(200, headers), 0, undefined);
  const range = readRange(wantedRange(request, tag), fileSize);
  switch (range.kind) {
    case "whole":
      headers["content-length"] = String(fileSize);
      return bytes(partsOf(200, headers), 0, fileSize);
    case "part":
      headers["content-length"] = String(range.end - range.start);
      headers["content-range"] = `bytes ${range.start}-${range.end - 1}/${fileSize}`;
      return bytes(partsOf(206, headers), range.start, range.end);
    case "beyond": {
      const refused = { "content-range": `bytes */${fileSize}` };
      const head = request.method === "HEAD";
      return { kind: "answered", answer: statusAnswer(416, head, refused) };
    }
  }
}

/** Headers for larder's own commands. */
function commandHeaders(
  { isFirstOfPrefetch }: Pick<NarFacts, "isFirstOfPrefetch">,
  request: Pick<ClientRequest, "headers">,
): Readonly<Record<string, string>> {
  return isFirstOfPrefetch && isByCommand(request) ? { [PREFETCHED_HEADER]: "1" } : {};
}

/**
 * The sent bytes of a hit or a joined request that are not saved: those beyond the file that the
 * answer is made of, in proportion for a part. `undefined`: all are saved, or none is.
 */
function unsavedBytes(
  counter: Series,
  { fileSize, madeOfBytes }: Pick<NarFacts, "fileSize" | "madeOfBytes">,
  result: CountedResult,
): UnsavedBytes | undefined {
  if (madeOfBytes === undefined || result !== "HIT" && result !== "JOINED") return undefined;
  const share = fileSize === undefined ? 1 : madeOfBytes / Math.max(fileSize, madeOfBytes, 1);
  return {
    counter,
    of: (sentBytes) => sentBytes - Math.min(Math.round(sentBytes * share), madeOfBytes),
  };
}

/** The Range header, unless If-Range names other bytes. */
function wantedRange(request: ClientRequest, tag: string | undefined): string | null {
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === `"${tag}"` ? request.headers.get("range") : null;
}

function headersOf({ cacheResult, fileSize, tag }: NarFacts): Record<string, string> {
  return {
    "x-cache": cacheResult,
    ...(fileSize === undefined ? {} : { "accept-ranges": "bytes" }),
    ...(tag === undefined ? {} : { etag: `"${tag}"` }),
  };
}

function partsOf(status: number, headers: Readonly<Record<string, string>>): AnswerParts {
  return { status, type: "application/x-nix-nar", lifetime: "immutable", headers };
}

function bytes(parts: AnswerParts, start: number, end: number | undefined): NarPlan {
  return { kind: "bytes", parts, start, end };
}

/** A Range header's meaning for one file: all of it, a part, or a start beyond its end. */
type RangeReading =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly start: number; readonly end: number }
  | { readonly kind: "beyond" };

const RANGE_REGEXP = /^bytes=(?:(\d+)-(\d+)?|-(\d+))$/i;

const WHOLE = { kind: "whole" } as const;

/**
 * Reads a Range header for a file of `fileSize` bytes; `end` is exclusive. A malformed or multiple
 * range means the whole file (RFC 9110, 14.2 allows it).
 */
export function readRange(header: string | null, fileSize: number): RangeReading {
  const match = header === null ? null : RANGE_REGEXP.exec(withoutBlanks(header));
  if (match === null) return WHOLE;
  const [, first, last, suffix] = match;
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), fileSize);
    return length === 0 ? { kind: "beyond" } : part(fileSize - length, fileSize);
  }
  const start = Number(first);
  const end = last === undefined ? fileSize : Math.min(Number(last) + 1, fileSize);
  if (last !== undefined && Number(last) < start) return WHOLE;
  return start >= fileSize ? { kind: "beyond" } : part(start, end);
}

function part(start: number, end: number): RangeReading {
  return { kind: "part", start, end };
}

/** The answer by which another server sends a stored object; `undefined`: larder sends it. */
export type HandOver = (
  answer: NarAnswer,
  plan: NarPlan & { readonly kind: "bytes" },
  request: ClientRequest,
) => Promise<HandedOverAnswer | undefined>;

/** How long a client may follow a redirect. Clocks may differ by minutes. */
const REDIRECT_VALID_MS = 5 * 60_000;

/**
 * A proxy asks for it with this field. Without it a client that larder takes for the proxy, such
 * as a browser on the same machine, would get an empty body.
 */
const WISH_FIELD = "x-sendfile-type";
const WISH = "x-accel-redirect";

/** nginx sends a file of one of its internal locations. */
export function accelRedirect(locationOf: (at: StoredName) => string): HandOver {
  return async (answer, { parts, start, end = 0 }, request) => {
    if (answer.handOver === undefined || !wishesIt(request)) return undefined;
    const { "content-length": _, ...headers } = parts.headers ?? {};
    const place = { "x-accel-redirect": locationOf(await answer.handOver()) };
    return new HandedOverAnswer({ ...parts, headers: { ...headers, ...place } }, end - start);
  };
}

/** The store sends each whole NAR. The redirect is for this request alone. */
export function storeRedirect(locator: NarLocator): HandOver {
  return async (answer, { parts: { status, headers }, end = 0 }) => {
    if (answer.handOver === undefined || status !== 200) return undefined;
    const location = await locator.locate(await answer.handOver(), REDIRECT_VALID_MS);
    const cacheResult = headers?.["x-cache"] ?? "";
    const fields = { location: location.href, "content-length": "0", "x-cache": cacheResult };
    const parts = { status: 307, type: "text/plain", lifetime: "never", headers: fields } as const;
    return new HandedOverAnswer(parts, end);
  };
}

function wishesIt({ ofTrustedProxy, headers }: ClientRequest): boolean {
  return ofTrustedProxy === true && headers.get(WISH_FIELD)?.toLowerCase() === WISH;
}
