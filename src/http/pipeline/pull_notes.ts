import type { Stretch } from "../../base/wait_notes.ts";
import type { OpenPull, PathResult } from "../../history/open_pulls.ts";
import type { Pulls } from "../../history/pulls.ts";
import { MEMBER_HEADER } from "../../upstream/member_request.ts";
import type { Answer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import { isByCommand } from "../routes/request_series.ts";
import { pathOf } from "./path.ts";

/** How paths came, by how their requests count. */
const RESULTS: Readonly<Record<string, PathResult>> = {
  HIT: "hit",
  JOINED: "joined",
  prefetched: "ahead",
  MISS: "fetched",
};

/** A request of a pull that has ended. */
export interface PulledRequest {
  readonly pull: OpenPull;
  readonly kind: "narinfo" | "nar";
  readonly request: ClientRequest;
  readonly answer: Answer;
  readonly startedAtMs: number;
  readonly answeredAtMs: number;
  readonly endedAtMs: number;
  readonly bytes: number;
  /** When the client had all that there was of the body. */
  readonly waits: readonly Stretch[];
}

/** Notes for a pull how a request went that was no stored narinfo. */
export function notePulled(pulls: Pick<Pulls, "requestEnded">, pulled: PulledRequest): void {
  const { pull, kind, request, answer, bytes } = pulled;
  const { startedAtMs, answeredAtMs, endedAtMs, waits } = pulled;
  const { counted, narName, status } = answer;
  const result = counted === undefined ? undefined : RESULTS[counted];
  const isAbsent = counted === undefined && status === 404;
  // Other members count their own clients, and larder's commands are none.
  const isOther = isByCommand(request) || request.headers.get(MEMBER_HEADER) !== null;
  if (isOther || result === undefined && !isAbsent) return pull.uncounted();
  const asked = lastSegment(request.url);
  const isFromUpstream = answer.hasAsked || answer.headers.get("x-cache") !== "HIT";
  const times = { startedAtMs, answeredAtMs, endedAtMs };
  const how = { kind, result: result ?? "absent", isFromUpstream } as const;
  const named = { name: narName ?? asked, bytes };
  const wanted = kind === "narinfo" ? asked : named.name;
  pulls.requestEnded(pull, { ...how, ...times, ...named }, wanted, waits);
}

/** The hash of a narinfo, or the name of a NAR file, as the client wrote it. */
function lastSegment(url: string): string {
  const path = pathOf(url) ?? "";
  const name = path.slice(path.lastIndexOf("/") + 1).slice(0, 120);
  return name.endsWith(".narinfo") ? name.slice(0, -".narinfo".length) : name;
}
