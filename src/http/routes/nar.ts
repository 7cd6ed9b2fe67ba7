import type { Facts } from "../../base/failure.ts";
import type { NarAnswer, NarFacts } from "../../cache/nar/nar_answer.ts";
import type { PathRecord } from "../../cache/nar/path_record.ts";
import type { MemberNarServer } from "../../cache/serve_member.ts";
import type { NarServer } from "../../cache/serve_nar.ts";
import type { StorePathNames } from "../../cache/store_path_names.ts";
import { MEMBER_HEADER } from "../../upstream/member_request.ts";
import { linkToPath } from "../../upstream/nar_link.ts";
import { type NarName, parseNarName, parseNarReference } from "../../nix/nar_name.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import {
  type Answer,
  type AnswerParts,
  type Body,
  countedAnswer,
  type CountedResult,
  headAnswer,
  statusAnswer,
  streamAnswer,
} from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import { queryIn } from "../message/target.ts";
import type { HandOver } from "./nar_hand_over.ts";
import { type NarPlan, planNar } from "./nar_plan.ts";
import { removeHandler } from "./remove_handler.ts";
import { countedAs, isByCommand, requestSeries, servedBytes } from "./request_series.ts";
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
        const stream = { served: bytes[result], release: answer.release };
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
