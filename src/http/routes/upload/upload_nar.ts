import { contentCoding, UploadRefused } from "../../../cache/upload/upload_body.ts";
import type { NarUploads } from "../../../cache/upload/nar_uploads.ts";
import type { StoredView } from "../../../cache/upload/stored_view.ts";
import { parseNarName } from "../../../nix/nar_name.ts";
import { headAnswer, statusAnswer, streamAnswer } from "../../message/message.ts";
import { planNar } from "../nar.ts";
import type { Route } from "../router.ts";
import { uploadBodyOf, uploadHandler, type UploadHandlerDeps } from "./upload_answer.ts";

export interface UploadNarRouteDeps {
  readonly handling: UploadHandlerDeps;
  readonly stored: Pick<StoredView, "nar">;
  /** `undefined` unless uploads are allowed. */
  readonly uploads: Pick<NarUploads, "accept"> | undefined;
}

const NAME_LINE = "expected nar/, the SHA-256 of the file in nix32, .nar, " +
  "and .xz, .zst, .gz, .bz2, .br or nothing";

const ABSENT = { "x-cache": "MISS" };

/** A NAR file of a push: stored by PUT, served from the storage alone. */
export function uploadNarRoute({ stored, uploads, handling }: UploadNarRouteDeps): Route {
  return {
    name: "/upload/nar/{name}",
    path: { before: "/upload/nar/", behind: "" },
    streams: true,
    inPieces: true,
    describe: (path) => {
      const nar = parseNarName(path.slice(path.lastIndexOf("/") + 1));
      return nar === undefined ? {} : { nar };
    },
    methods: {
      async GET({ params: [text = ""], request, requestId, head }) {
        const name = parseNarName(text);
        const answer = name && await stored.nar(name, { requestId, client: request });
        if (answer === undefined) return statusAnswer(404, head, ABSENT);
        const plan = planNar(request, answer);
        if (head || plan.kind === "answered") {
          await answer[Symbol.asyncDispose]();
          return plan.kind === "answered" ? plan.answer : headAnswer(plan.parts);
        }
        const body = await answer.read(plan.start, plan.end, request);
        return streamAnswer(body, plan.parts, { release: answer.release });
      },
      ...(uploads === undefined ? {} : {
        PUT: uploadHandler(handling, "nar", async ({ params: [text = ""], request, requestId }) => {
          const narName = parseNarName(text);
          if (narName === undefined) throw new UploadRefused("invalid", NAME_LINE);
          if (contentCoding(request.headers.get("content-encoding")) !== "none") {
            throw new UploadRefused("encoding", "expected a NAR file without Content-Encoding");
          }
          const requester = { requestId, client: request };
          return await uploads.accept({ narName, body: uploadBodyOf(request), requester });
        }),
      }),
    },
  };
}
