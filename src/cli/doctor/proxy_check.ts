import { messageOf } from "../../base/failure.ts";
import type { Settings } from "../../config/options.ts";
import { TrustedProxies } from "../../http/proxy/trusted_proxies.ts";
import { type Finding, findingsOn } from "./finding.ts";
import { type ServerState, type ServerTarget, statsOf } from "./server_check.ts";

/** An address of documentation (RFC 5737), which no client has. */
const FORGED = "192.0.2.199";

const FORGERIES = [["X-Forwarded-For", FORGED], ["Forwarded", `for=${FORGED}`]] as const;

/** Finds out, by a forged header, if a client can set the address that the server sees. */
export async function checkProxyHeaders(
  settings: Settings,
  target: ServerTarget,
  state: ServerState & { readonly kind: "running" },
): Promise<Finding> {
  const { ok, warning, failed, notChecked } = findingsOn("proxy headers");
  const ranges = settings["server.trusted-proxies"];
  const isBehindProxy = state.proxyHeaders.length > 0;
  if (ranges.length === 0) {
    if (!isBehindProxy) return ok("no proxy is trusted, and none answers here");
    const fact = "a proxy answers here, and larder trusts none: all clients have its address";
    return warning(fact, "give the proxy's address with --server-trusted-proxies");
  }
  const seen = state.stats?.client;
  if (seen === undefined) {
    const advice = "give a token with --token-file";
    return notChecked("the server does not tell the address that it sees", advice);
  }
  // The server believes any header that comes from an address in the ranges.
  if (new TrustedProxies(ranges).trusts(seen)) {
    const fact = `this command comes from ${seen}, which --server-trusted-proxies has`;
    return notChecked(fact, "run it on a client, with --server and the address that clients use");
  }
  try {
    // One at a time: larder believes neither of two that disagree.
    for (const [name, value] of FORGERIES) {
      const json = await statsOf(target, { [name]: value });
      if (json?.client !== FORGED) continue;
      const advice = "let the proxy replace or extend X-Forwarded-For and Forwarded";
      return failed(`a client can forge its address by ${name}`, advice);
    }
    return ok(`a forged address is not believed: this command has ${seen}`);
  } catch (error) {
    return notChecked(messageOf(error), "run this again");
  }
}
