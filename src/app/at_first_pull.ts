import type { RequestPipeline } from "../http/pipeline/request_pipeline.ts";

/** Paths that a client requests before its NARs. */
const PULL_REGEXP = /\/nix-cache-info$|\.narinfo$/;

/** Calls `begun` behind the first answer to a client that pulls. */
export function atFirstPull(pipeline: RequestPipeline, begun: () => void): RequestPipeline {
  let handle: RequestPipeline["handle"] = (request, delivery) => {
    const answer = pipeline.handle(request, delivery);
    if (PULL_REGEXP.test(request.url)) {
      handle = pipeline.handle;
      answer.then(begun);
    }
    return answer;
  };
  return {
    handle: (request, delivery) => handle(request, delivery),
    refuse: pipeline.refuse,
  };
}
