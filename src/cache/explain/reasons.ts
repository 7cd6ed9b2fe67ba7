import type { NotKeptBy } from "../nar/publish_nar.ts";
import { counted, formatBytes, formatMs } from "../../base/format_units.ts";
import type { SignatureCheck } from "../../nix/trusted_keys.ts";
import { wrongKeyHint } from "../../upstream/failure_hints.ts";
import { limitOrigin, moreRoomHint } from "../../space/size_limit.ts";
import type { ExplainedAnswer, ExplainedUnstored, Explanation } from "./explanation.ts";

type ExplainedFacts = Omit<Explanation, "reasons">;

const FINDINGS: Readonly<Record<ExplainedFacts["verdict"], string>> = {
  hit: "A request is a hit: the narinfo and the NAR file are stored.",
  downloading: "The narinfo is stored, and larder downloads its NAR file now. " +
    "The next request for the NAR joins the download.",
  nar_not_stored: "The narinfo is stored, and its NAR file is not. " +
    "So the next request for the NAR is a miss: it asks the upstreams. " +
    "The next request for the narinfo asks them too, unless one was seen with it within the hour.",
  storage_away: "The narinfo and the NAR file are stored, but the storage does not answer now. " +
    "So a request for the NAR asks the upstreams.",
  absent: "A request gets 404 for now: every upstream that answered said it is absent.",
  not_stored: "The narinfo is not stored, so the next request is a miss: it asks the upstreams.",
};

/** Words for the result of a narinfo request. */
const RESULTS: Readonly<Record<string, string>> = {
  found: "had its narinfo",
  absent: "did not have it",
  down: "got no request: it was down",
  late: "had not answered",
  timeout: "did not answer in time",
  unreachable: "could not be reached",
  status: "answered with an error",
  garbage: "answered with something that is no narinfo",
  untrusted: "had it",
};

/** Words for the result of a NAR request. Other results have the words above. */
const NAR_RESULTS: Readonly<Record<string, string>> = {
  upstream: "broke the transfer off",
  stalled: "stopped sending",
  wrong: "sent bytes that are not the announced NAR",
};

/** Names of pins in one sentence. */
const NAMES_MAX = 4;

/** The reasons in sentences, the most important first. */
export function reasonsOf(facts: ExplainedFacts): readonly string[] {
  return [
    FINDINGS[facts.verdict],
    ...downloadReasons(facts),
    ...lostReasons(facts),
    ...unstoredReasons(facts),
    ...evictedReasons(facts),
    ...storedReasons(facts),
    ...paceReasons(facts),
    ...answerReasons(facts),
    ...signatureReasons(facts),
    ...evictionReasons(facts),
  ];
}

function downloadReasons({ nar }: ExplainedFacts): readonly string[] {
  if (nar === null || nar.download === null) return [];
  const { state, from, received_bytes, file_bytes, bytes_per_second } = nar.download;
  const here = formatBytes(received_bytes);
  if (state === "verifying") return [`All its ${here} are here, and larder checks them.`];
  const senders = from.join(" or ");
  if (state === "opening") {
    return [senders === "" ? "No byte of it is here yet." : `larder waits for ${senders}.`];
  }
  const whole = file_bytes === null ? "" : ` of ${formatBytes(file_bytes)}`;
  const rate = bytes_per_second === null ? "" : `, at ${formatBytes(bytes_per_second)}/s`;
  return [`${here}${whole} are here${senders === "" ? "" : `, from ${senders}`}${rate}.`];
}

function lostReasons({ nar }: ExplainedFacts): readonly string[] {
  if (nar === null || nar.is_stored) return [];
  const lost = nar.is_lost
    ? ["larder stored its NAR file, and the file is missing or damaged. It counts as evicted."]
    : [];
  const seen = nar.seen_at === null
    ? "No upstream was ever seen with it: it was uploaded or imported. Push it again."
    : Date.parse(nar.seen_at) === 0
    ? "Its NAR file was lost, and no upstream was seen with it since."
    : `An upstream was last seen with it at ${timeOfDay(nar.seen_at)}.`;
  return [...lost, seen];
}

function unstoredReasons({ unstored: last }: ExplainedFacts): readonly string[] {
  if (last === null) return [];
  return [
    ...unstoredReason(last),
    ...last.answers.map((answer) => `To the NAR request, ${answerIn(answer, NAR_RESULTS)}`),
  ];
}

const FAILED_PARTS: Readonly<Record<NotKeptBy, string>> = {
  disk: "the disk failed, or is full",
  storage: "the store of NAR files failed",
  database: "the database failed",
};

function unstoredReason(
  { reason, at, ...sizes }: ExplainedUnstored,
): readonly string[] {
  const [bytes, limit, pinned] = [sizes.bytes, sizes.limit_bytes, sizes.pinned_bytes].map((size) =>
    formatBytes(size ?? 0)
  );
  const source = sizes.limit_source ?? "set";
  if (reason === "not_sent") {
    return [`The last NAR request failed at ${timeOfDay(at)}: no upstream sent the whole file.`];
  }
  if (reason !== "no_room") {
    return [`larder could not store its NAR file at ${timeOfDay(at)}: ${FAILED_PARTS[reason]}.`];
  }
  return [
    `larder could not store its NAR file at ${timeOfDay(at)}: there was no room for ${bytes}.`,
    `The limit is ${limit} (${limitOrigin(source)}), and pins keep ${pinned}. ` +
    `A file that does not fit passes through to each client: ${moreRoomHint(source)}.`,
  ];
}

function evictedReasons({ evicted_at, verdict, unstored }: ExplainedFacts): readonly string[] {
  if (evicted_at === null) return [];
  if (unstored !== null && unstored.at <= evicted_at) {
    return [
      `larder evicted its narinfo at ${timeOfDay(evicted_at)}. Its NAR file was not there then.`,
    ];
  }
  const since = verdict === "hit" || verdict === "storage_away"
    ? ", and fetched it again since"
    : "";
  return [`larder evicted it at ${timeOfDay(evicted_at)}${since}.`];
}

function storedReasons({ nar, narinfo, used_at, used_by }: ExplainedFacts): readonly string[] {
  if (nar === null || !nar.is_stored) return [];
  const upstreams = narinfo?.upstreams ?? [];
  const cameAt = nar.came_at === null ? "" : ` at ${timeOfDay(nar.came_at)}`;
  const stored = nar.stored_at === null
    ? "An older larder stored its NAR file, and did not record when."
    : nar.recompressed !== null
    ? `larder keeps its NAR file in ${nar.recompressed} since ${timeOfDay(nar.stored_at)}. ` +
      (upstreams.length === 0
        ? `It was uploaded or imported${cameAt}.`
        : `It was fetched${cameAt && `${cameAt},`} from ${sendersIn(nar, upstreams)}`)
    : upstreams.length === 0
    ? `Its NAR file was uploaded or imported at ${timeOfDay(nar.stored_at)}.`
    : `larder fetched its NAR file at ${timeOfDay(nar.stored_at)}, from ${
      sendersIn(nar, upstreams)
    }`;
  const used = used_at === null
    ? "No client has used it."
    : used_by === "command"
    ? `A command such as larder warm asked for it last at ${timeOfDay(used_at)}, ` +
      "and no client since."
    : `A client${used_by === null ? ", or a command such as larder warm," : ""} used it last at ` +
      `${timeOfDay(used_at)}.`;
  return [stored, used];
}

function paceReasons({ nar }: ExplainedFacts): readonly string[] {
  if (nar === null || nar.pace === null) return [];
  const { upstream, bytes_per_second, ms, is_slow, at } = nar.pace;
  const isComing = nar.download !== null;
  const came =
    `Its NAR file ${isComing ? "comes" : "came"} at ${formatBytes(bytes_per_second)}/s ` +
    `from ${upstream}, for ${formatMs(ms)}${isComing ? " so far" : ` until ${timeOfDay(at)}`}.`;
  if (!is_slow) return [came];
  return [
    `${came} That is slow: if it lasts, and this machine's line is not to blame, name a nearer ` +
    `mirror in place of --cache-upstream-url ${upstream}.`,
  ];
}

function sendersIn(
  { from }: NonNullable<ExplainedFacts["nar"]>,
  upstreams: readonly string[],
): string {
  if (from !== null) return `${from.join(" and ")}.`;
  return `one of: ${upstreams.join(", ")}. ` +
    "Only the larder that fetched it remembers which one, until it restarts.";
}

/** True for a path that no upstream was seen with: somebody uploaded or imported it. */
function isOwn({ narinfo, nar }: ExplainedFacts): boolean {
  return narinfo !== null && narinfo.upstreams.length === 0 && nar !== null && nar.seen_at === null;
}

function answerReasons(facts: ExplainedFacts): readonly string[] {
  const { answers, verdict } = facts;
  if (answers.length > 0) return answers.map((answer) => answerIn(answer));
  if (isOwn(facts)) return [];
  return verdict !== "absent" && verdict !== "not_stored"
    ? ["What the upstreams said is not recorded: it was before the start of larder."]
    : ["larder has sent no upstream a request for it since its start."];
}

function answerIn(
  { upstream, result, status, wrong_key, waited_ms, took_ms, at }: ExplainedAnswer,
  texts: typeof RESULTS = {},
): string {
  const said = result === "status" && status !== null
    ? `answered with HTTP status ${status}`
    : texts[result] ?? RESULTS[result] ?? "answered";
  const keyAdvice = wrong_key === null
    ? "set --cache-upstream-public-key"
    : wrongKeyHint(wrong_key);
  const waited = waited_ms === null
    ? ""
    : ` The client waited ${waited_ms} ms for it, because its priority is better. ` +
      `To change that, give it a higher ?priority=N behind --cache-upstream-url ${upstream}.`;
  const took = took_ms === null
    ? ""
    : ` It took ${formatMs(took_ms)} to answer: if that lasts, name a nearer mirror in place of ` +
      `--cache-upstream-url ${upstream}.`;
  const behind = result === "untrusted" ? `, but no trusted key signs it: ${keyAdvice}` : "";
  return `${upstream} ${said} at ${timeOfDay(at)}${behind}.${waited}${took}`;
}

function signatureReasons(facts: ExplainedFacts): readonly string[] {
  const { narinfo } = facts;
  if (narinfo === null) return [];
  const { keys, signatures } = narinfo;
  const of = (check: SignatureCheck) =>
    signatures.filter((one) => one.check === check).map(({ key }) => key).join(", ");
  const [unknown, wrong] = [of("unknown key"), of("wrong")];
  const signed = keys.length > 0
    ? `Its narinfo is signed by ${keys.join(", ")}: verified.`
    : isOwn(facts)
    ? "Its narinfo needs no key of an upstream, as it was uploaded or imported."
    : "Its narinfo is signed by no trusted key.";
  return [
    signed,
    ...unknown === "" ? [] : [`It has a signature of an unknown key: ${unknown}.`],
    ...wrong === ""
      ? []
      : [`It has a wrong signature: ${wrong} did not sign it, though the signature says so.`],
  ];
}

function evictionReasons(
  { nar, pins, pin_count, eviction_rank, has_limit }: ExplainedFacts,
): readonly string[] {
  if (nar === null || !nar.is_stored) return [];
  if (pins === null) return ["Whether a pin keeps it is unknown: the closures are too large."];
  if (pins.length > 0) {
    const count = pin_count ?? pins.length;
    const names = pins.slice(0, NAMES_MAX).map(({ root, name }) => name ?? root).join(", ");
    const more = count > NAMES_MAX ? `, and ${count - NAMES_MAX} more` : "";
    return [
      `Eviction spares it: ${counted(count, "pin reaches", "pins reach")} it, ${names}${more}.`,
    ];
  }
  if (!has_limit) return ["Nothing evicts it: there is no size limit."];
  if (eviction_rank === null) {
    return ["It is not among the 1,000 entries that eviction takes next."];
  }
  return [
    eviction_rank === 1
      ? "It is the next entry that eviction takes."
      : `Eviction takes ${counted(eviction_rank - 1, "entry", "entries")} before it.`,
  ];
}

function timeOfDay(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}
