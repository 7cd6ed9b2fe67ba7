import type { RequestPipeline } from "../http/pipeline/request_pipeline.ts";

/**
 * Calls `begun` once the first answer is sent, or has failed. A health check is one, too: the first
 * NAR of a client that has its narinfos already finds the Workers ready.
 */
export function atFirstAnswer(pipeline: RequestPipeline, begun: () => void): RequestPipeline {
  let handle: RequestPipeline["handle"] = (request, delivery) => {
    const answer = pipeline.handle(request, delivery);
    (delivery?.ended ?? answer).then(() => {
      // Of several, the first to end counts: another may be long.
      if (handle === pipeline.handle) return;
      handle = pipeline.handle;
      begun();
    });
    return answer;
  };
  return {
    handle: (request, delivery) => handle(request, delivery),
    refuse: pipeline.refuse,
  };
}
