import type { Bytes } from "../../base/bytes.ts";
import { snakeNames } from "../../base/snake_names.ts";
import { clock } from "../../runtime/current.ts";
import { type Answer, streamAnswer } from "../message/message.ts";
import { failedLine, failureFacts } from "../message/lost_part.ts";

const PROGRESS_EVERY_MS = 1_000;

/** The head waits so long for the first event: a database that is away is known sooner. */
export const HEAD_AFTER_MS = 9_000;

type Events = AsyncIterator<{ readonly event: string }>;

/**
 * The events as JSON lines, as they come, not as the client reads them: a stalled client must not
 * block a run for others. A client that leaves ends its run. Throws for a run that fails before its
 * first event. One that fails later says in its last line what was lost.
 */
export async function eventsAnswer(
  events: AsyncIterable<{ readonly event: string }>,
): Promise<Answer> {
  const coming = events[Symbol.asyncIterator]();
  const first = coming.next();
  await clock.within(first, HEAD_AFTER_MS);
  const type = "application/x-ndjson";
  const lines = linesOf(startingWith(first, coming), (error) => {
    answer.failed = failureFacts(error);
  });
  const answer: Answer = streamAnswer(lines, { status: 200, type, lifetime: "never" });
  return answer;
}

async function* startingWith(
  first: ReturnType<Events["next"]>,
  rest: Events,
): AsyncGenerator<{ readonly event: string }> {
  try {
    for (let next = await first; !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

function linesOf(
  events: AsyncIterable<{ readonly event: string }>,
  failed: (error: unknown) => void,
): ReadableStream<Bytes> {
  const encoder = new TextEncoder();
  let gone = false;
  let failure: { readonly error: unknown } | undefined;
  return new ReadableStream({
    start(controller) {
      void send(controller);
    },
    pull(controller) {
      // Behind all lines: an error drops those that wait.
      if (failure !== undefined) controller.error(failure.error);
    },
    cancel() {
      gone = true;
    },
  });

  async function send(controller: ReadableStreamDefaultController<Bytes>) {
    let sentAtMs = -Infinity;
    try {
      for await (const event of events) {
        if (gone) return;
        const nowMs = clock.nowMs();
        const isFull = (controller.desiredSize ?? 0) <= 0;
        if (event.event === "progress" && (isFull || nowMs - sentAtMs < PROGRESS_EVERY_MS)) {
          continue;
        }
        sentAtMs = nowMs;
        controller.enqueue(encoder.encode(`${JSON.stringify(snakeNames(event))}\n`));
        if (event.event === "done") break;
      }
      controller.close();
    } catch (error) {
      if (gone) return;
      failed(error);
      failure = { error };
      // Programs that read no lines notice the transfer that breaks behind it.
      controller.enqueue(failedLine(error));
    }
  }
}
