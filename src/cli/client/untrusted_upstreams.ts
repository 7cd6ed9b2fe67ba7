import type { EventKind } from "../../telemetry/events.ts";
import { answerJson } from "./server_answer.ts";
import type { ServerClient } from "./server_client.ts";

// The server's text reaches the terminal, so only characters of an upstream's URL are valid.
const URL_REGEXP = /^https?:\/\/[\w.:[\]\/~%+-]{1,200}$/;

const UNTRUSTED: EventKind = "upstream-untrusted";

/**
 * The upstreams whose signatures the server does not trust. Empty if the server does not list them:
 * it is another program, an older larder, or wants another token.
 */
export async function untrustedUpstreams(
  client: Pick<ServerClient, "request">,
): Promise<readonly string[]> {
  try {
    const { upstreams = [], problems = [] } = Object(await answerJson(client, "/stats"));
    const last = listOf(upstreams).filter(({ last_answer }) => last_answer?.result === "untrusted")
      .map(({ url }) => url);
    const warned = listOf(problems).filter(({ event }) => event === UNTRUSTED)
      .map(({ facts }) => facts?.upstream);
    return [...new Set([...last, ...warned].map(String))].filter((url) => URL_REGEXP.test(url));
  } catch {
    return [];
  }
}

interface StatsEntry {
  readonly url?: unknown;
  readonly event?: unknown;
  readonly last_answer?: { readonly result?: unknown };
  readonly facts?: { readonly upstream?: unknown };
}

function listOf(value: unknown): readonly StatsEntry[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];
}
