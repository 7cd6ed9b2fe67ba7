import type { NarAnswer } from "../../cache/nar/nar_answer.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import { HandedOverAnswer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import type { NarPlan } from "./nar_plan.ts";

/** The header fields by which a proxy finds a stored object, to send it itself. */
export type HandOver = (at: StoredName) => Readonly<Record<string, string>>;

/**
 * A proxy asks for it with this field. Without it a client that larder takes for the proxy, such
 * as a browser on the same machine, would get an empty body.
 */
const WISH_FIELD = "x-sendfile-type";
const WISH = "x-accel-redirect";

/** The field by which nginx sends a file of one of its internal locations. */
export function accelRedirect(locationOf: (at: StoredName) => string): HandOver {
  return (at) => ({ "x-accel-redirect": locationOf(at) });
}

/** `undefined` if larder sends the bytes: nobody asks for less, or there is no file. */
export async function handedOver(
  answer: NarAnswer,
  { parts, start, end = 0 }: NarPlan & { readonly kind: "bytes" },
  { request, handOver }: { readonly request: ClientRequest; readonly handOver: HandOver },
): Promise<HandedOverAnswer | undefined> {
  if (answer.handOver === undefined || !wishesIt(request)) return undefined;
  const { "content-length": _, ...headers } = parts.headers ?? {};
  const place = handOver(await answer.handOver());
  return new HandedOverAnswer({ ...parts, headers: { ...headers, ...place } }, end - start);
}

function wishesIt({ ofTrustedProxy, headers }: ClientRequest): boolean {
  return ofTrustedProxy === true && headers.get(WISH_FIELD)?.toLowerCase() === WISH;
}
