import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import { ReadTurns, type ReadTurnsLimits } from "../../base/read_turns.ts";
import type { PlannedPath } from "../../cache/plan/planned_path.ts";
import { PLAN_PATHS_MAX, type Planner } from "../../cache/plan/planner.ts";
import {
  collectBody,
  type CollectedBody,
  type UploadFault,
  UploadRefused,
} from "../../cache/upload/upload_body.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import {
  Answer,
  type ClientRequest,
  lineAnswer,
  RETRY_AFTER,
  statusAnswer,
  streamAnswer,
} from "../message/message.ts";
import { failedLine, failureFacts } from "../message/lost_part.ts";
import { HEAD_AFTER_MS } from "./event_lines.ts";
import { waiterOf } from "./explain.ts";
import type { Route } from "./router.ts";
import { storePathHashIn } from "./store_path_text.ts";

export interface PlanRouteDeps {
  readonly planner: Pick<Planner, "planClosure" | "upstreams">;
  readonly turns: ReadTurns;
  readonly log: Pick<Logger, "debug">;
}

/** The most paths of one request, each in a line of its own. */
const BODY_BYTES_MAX = PLAN_PATHS_MAX * 100;

/** Bodies of the plans that run and wait. */
const BODIES_BYTES_MAX = 4 * BODY_BYTES_MAX;

/** Lines that wait for the client. */
const LINES_BYTES_MAX = 256 * 1024;

/** A client that takes nothing for so long loses its plan: others wait for their turn. */
const STALL_MAX_MS = 10_000;

/** A command waits up to a minute for the head of an answer. */
const LIMITS: Partial<ReadTurnsLimits> = { waitMaxMs: 50_000, runMaxMs: 600_000 };

/** The turns of plans: one runs at a time. Another one may ask upstreams for thousands of narinfos. */
export function planTurns(): ReadTurns {
  return new ReadTurns(LIMITS);
}

interface PlanRequest {
  readonly roots: ReadonlySet<StorePathHash>;
  readonly except: Set<StorePathHash>;
}

/**
 * `POST /plan`: tells where a pull would find the closures of store paths, as JSON lines. The body
 * has a store path or its hash on each line. A line that begins with "-" leaves a path out.
 */
export function planRoute({ planner, turns, log }: PlanRouteDeps): Route {
  const allowance = pathListAllowance();
  let plans = 0;
  return {
    name: "/plan",
    path: "/plan",
    audience: "own-names",
    query: {},
    inPieces: true,
    methods: {
      async POST({ request, requestId, head }): Promise<Answer> {
        const body = await pathListIn(request, allowance);
        if (body instanceof Answer) return body;
        using held = new DisposableStack();
        held.use(body.share);
        const order = readOrder(new TextDecoder().decode(body.bytes));
        if (typeof order === "string") return lineAnswer(400, order, head);
        const { roots, except } = order;
        const lines = new Lines();
        const begun = Promise.withResolvers<void>();
        const over = turns.run(waiterOf(request), {
          key: String(++plans),
          async run(signal) {
            using _late = clock.countdown(HEAD_AFTER_MS, begun.resolve);
            const tell = (path: PlannedPath) => {
              begun.resolve();
              return lines.add({ event: "path", ...path });
            };
            try {
              await planner.planClosure(roots, { seen: except, requestId, signal, tell });
              await lines.add({ event: "done", upstreams: planner.upstreams() });
            } catch (error) {
              if (!(error instanceof Failure) || error.kind !== "bad-request") throw error;
              await lines.add({ event: "too_many_paths", paths_max: PLAN_PATHS_MAX });
            }
          },
        });
        // Throws for a plan that gets no turn, or fails before its first path.
        await Promise.race([begun.promise, over]);
        // The paths of the body are in memory as long as the plan.
        const rest = held.move();
        over.finally(() => rest.dispose()).then(() => lines.end(), (error) => {
          log.debug("plan ended early", { error: messageOf(error), request_id: requestId });
          answer.failed = failureFacts(error);
          lines.end(error);
        });
        const parts = { status: 200, type: "application/x-ndjson", lifetime: "never" } as const;
        const answer = streamAnswer(lines.stream, parts);
        return answer;
      },
    },
  };
}

/** The memory of the lists that run and wait. */
export function pathListAllowance(): MemoryAllowance {
  return new MemoryAllowance(BODIES_BYTES_MAX);
}

/** The statuses of bodies that cannot be read; others are cut. */
const BODY_STATUSES: Readonly<Partial<Record<UploadFault, number>>> = {
  "too-large": 413,
  "overloaded": 503,
  "stalled": 408,
};

/** The body of a request, or the answer to one that is too long, ends early or finds no memory. */
export async function pathListIn(
  request: ClientRequest,
  allowance: MemoryAllowance,
): Promise<CollectedBody | Answer> {
  try {
    const length = wholeNumber(request.headers.get("content-length"));
    const body = { stream: request.body, length, giveUp: () => request.giveUpBody?.() };
    return await collectBody(body, { bytesMax: BODY_BYTES_MAX, allowance });
  } catch (error) {
    if (!(error instanceof UploadRefused)) throw error;
    const status = BODY_STATUSES[error.fault] ?? 400;
    if (status === 413) return lineAnswer(413, `expected at most ${BODY_BYTES_MAX} bytes`);
    return statusAnswer(status, false, status === 503 ? RETRY_AFTER : {});
  }
}

/**
 * The paths of the lines, or a sentence about what is wrong with them. Empty lines count, too: a
 * body of nothing else would stop the thread for a second.
 */
function readOrder(text: string): PlanRequest | string {
  const roots = new Set<StorePathHash>();
  const except = new Set<StorePathHash>();
  let count = 0;
  for (let start = 0; start < text.length;) {
    if (++count > PLAN_PATHS_MAX) return `expected at most ${PLAN_PATHS_MAX} lines`;
    const end = text.indexOf("\n", start);
    const line = text.slice(start, end < 0 ? text.length : end);
    start += line.length + 1;
    if (line.trim() === "") continue;
    const isLeftOut = line.startsWith("-");
    const hash = storePathHashIn(isLeftOut ? line.slice(1) : line);
    if (hash === undefined) return `expected a store path or its hash in line ${count}`;
    (isLeftOut ? except : roots).add(hash);
  }
  if (roots.size === 0) return "expected a store path or its hash on each line: there is none";
  return { roots, except };
}

/** JSON lines at the client's pace. */
class Lines {
  readonly stream: ReadableStream<Bytes>;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Bytes> | undefined;
  #room = Promise.withResolvers<void>();
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;

  constructor() {
    this.stream = new ReadableStream<Bytes>({
      start: (controller) => void (this.#controller = controller),
      pull: () => {
        this.#roomCame();
        this.#break();
      },
      cancel: () => {
        this.#isOver = true;
        this.#roomCame();
      },
    }, new ByteLengthQueuingStrategy({ highWaterMark: LINES_BYTES_MAX }));
  }

  /** Waits for room. Throws when the client has left, or takes nothing for too long. */
  async add(line: object): Promise<void> {
    while (!this.#isOver && (this.#controller?.desiredSize ?? 0) <= 0) {
      const hasRoom = await clock.within(this.#room.promise.then(() => true), STALL_MAX_MS);
      if (hasRoom === undefined) {
        throw new Failure("stalled", "Cannot send plan: the client stalls");
      }
    }
    if (this.#isOver) throw new Failure("stalled", "Cannot send plan: the client has left");
    this.#controller?.enqueue(this.#encoder.encode(`${JSON.stringify(line)}\n`));
  }

  #roomCame(): void {
    const { resolve } = this.#room;
    this.#room = Promise.withResolvers();
    resolve();
  }

  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (error === undefined) return this.#controller?.close();
    // A client that takes nothing takes no last line.
    const isStalled = error instanceof Failure && error.kind === "stalled";
    if (isStalled) return this.#controller?.error(error);
    this.#failure = { error };
    // Programs that read no lines notice the transfer that breaks behind it.
    this.#controller?.enqueue(failedLine(error));
  }

  /** Behind all lines: an error drops those that wait. */
  #break(): void {
    const isEmpty = this.#controller?.desiredSize === LINES_BYTES_MAX;
    if (this.#failure !== undefined && isEmpty) this.#controller?.error(this.#failure.error);
  }
}
