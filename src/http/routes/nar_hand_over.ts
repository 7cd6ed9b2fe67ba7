import type { NarAnswer } from "../../cache/nar/nar_answer.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import type { NarLocator } from "../../storage/nar_store.ts";
import { HandedOverAnswer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import type { NarPlan } from "./nar.ts";

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
