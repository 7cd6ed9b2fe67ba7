import { UPSTREAM_NOT_TRUSTED } from "../../upstream/upstream_log.ts";
import type { ServerClient } from "./server_client.ts";

// A terminal shows them: nothing but what stands in the URL of an upstream.
const URL_REGEXP = /^https?:\/\/[\w.:[\]\/~%+-]{1,200}$/;

/**
 * The server's upstreams whose narinfos none of its keys verifies. None where it does not say:
 * another program, an older larder, one that wants another token for this.
 */
export async function untrustedUpstreams(
  client: Pick<ServerClient, "request">,
): Promise<readonly string[]> {
  try {
    const answer = await client.request("GET", "/stats");
    const { upstreams = [], problems = [] } = await answer.json();
    const last = listOf(upstreams).filter(({ lastAnswer }) => lastAnswer?.result === "untrusted")
      .map(({ url }) => url);
    const warned = listOf(problems).filter(({ message }) => message === UPSTREAM_NOT_TRUSTED)
      .map(({ facts }) => facts?.upstream);
    return [...new Set([...last, ...warned].map(String))].filter((url) => URL_REGEXP.test(url));
  } catch {
    return [];
  }
}

interface Told {
  readonly url?: unknown;
  readonly message?: unknown;
  readonly lastAnswer?: { readonly result?: unknown };
  readonly facts?: { readonly upstream?: unknown };
}

function listOf(value: unknown): readonly Told[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];
}
