import type { NarAnswer } from "../../cache/nar_answer.ts";
import type { NarServer } from "../../cache/serve_nar.ts";
import { type NarName, parseNarName } from "../../nix/nar_name.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { headAnswer, type Sending, statusAnswer, streamAnswer } from "../answer.ts";
import { type NarPlan, planNar } from "../nar_plan.ts";
import { removeHandler } from "../remove_handler.ts";
import { requestSeries, servedBytes } from "../request_series.ts";
import type { Route } from "../router.ts";
import { WatchedBody } from "../watched_body.ts";

export interface NarRouteDeps {
  readonly nars: Pick<NarServer, "open" | "stat">;
  readonly metrics: Metrics;
  /** Absent where clients may not remove anything. */
  readonly remove?: (narName: NarName) => Promise<boolean>;
}

/** A NAR file, whole or a range of it. */
export function narRoute({ nars, metrics, remove }: NarRouteDeps): Route {
  const requests = requestSeries(metrics, "nar");
  const served = metrics.series("nar_served_total", {});
  const bytes = servedBytes(metrics, "nar");

  return {
    name: "/nar/{name}",
    path: /^\/nar\/([^/]*)$/,
    cached: true,
    streams: true,
    methods: {
      async GET({ params: [text = ""], request, requestId, head }) {
        const name = parseNarName(text);
        if (name === undefined) return absent(head);
        if (head) {
          const facts = await nars.stat(name, requestId);
          return facts === undefined ? absent(head) : headOf(planNar(request, facts));
        }
        const answer = await nars.open(name, requestId);
        if (answer === undefined) return absent(head);
        requests[answer.source].count();
        return await getAnswer(planNar(request, answer), answer, {
          served,
          bytes: bytes[answer.source],
        });
      },
      ...(remove === undefined ? {} : { DELETE: removeHandler(parseNarName, remove) }),
    },
  };
}

function absent(head: boolean): Response {
  return statusAnswer(404, head, { "x-cache": "MISS" });
}

function headOf(plan: NarPlan): Response {
  return plan.kind === "answered" ? plan.response : headAnswer(plan.parts);
}

interface ServedSeries {
  readonly served: Series;
  readonly bytes: Series;
}

async function getAnswer(
  plan: NarPlan,
  answer: NarAnswer,
  { served, bytes }: ServedSeries,
): Promise<Response> {
  if (plan.kind === "answered") {
    answer[Symbol.dispose]();
    return plan.response;
  }
  served.count();
  const { body, sending } = await bodyOf(answer, plan.start, plan.end);
  return streamAnswer(body, plan.parts, { sending, served: bytes });
}

interface NarBody {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly sending: Sending;
}

async function bodyOf(answer: NarAnswer, start: number, end?: number): Promise<NarBody> {
  const whole = answer.whole();
  if (whole !== undefined) {
    answer[Symbol.dispose]();
    const bytes = whole.subarray(start, end);
    return { body: oneChunk(bytes), sending: unwatched(bytes.length) };
  }
  const { source, fileSize } = answer;
  const body = await answer.read(start, end);
  const length = (end ?? fileSize ?? NaN) - start;
  // A kept file is read by Deno itself, without us; that is worth more than knowing how far.
  if (source === "HIT") return { body, sending: unwatched(length) };
  const watched = new WatchedBody(body, length);
  return { body: watched.body, sending: watched };
}

/** Nobody learns how far it comes: it is taken for whole. */
function unwatched(length: number): Sending {
  return { bytes: () => length, end: () => "whole" };
}

/** A body whose bytes are there at once: head and body then leave in one piece. */
function oneChunk(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
}
