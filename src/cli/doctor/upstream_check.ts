import type { UpstreamProbe } from "../../app/doctor/probe_upstreams.ts";
import { CA_AS_SERVER, wrongKeyHint } from "../../upstream/failure_hints.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** larder prefetches nothing from an upstream that takes longer. */
const SLOW_PART = 2;

const ADVICE: readonly (readonly [sign: RegExp, advice: string])[] = [
  [/CaUsedAsEndEntity/, CA_AS_SERVER],
  [
    /certificate/i,
    "give its authority with --cache-upstream-ca-file, and check the clock of this machine",
  ],
  [/connecting took over/, "check the network, or raise --cache-upstream-dialer-timeout"],
  [/took over/, "check the upstream, or raise --cache-upstream-body-idle-timeout"],
  [/HTTP status 40[13], with/, "correct its credentials in --netrc-file or in its URL"],
  [/HTTP status 40[13]/, "give its credentials with --netrc-file"],
  [/store directory|Cannot read nix-cache-info/, "give the URL of a binary cache for /nix/store"],
];

const ELSE = "check its URL, the name service and the firewall";

export interface UpstreamFacts {
  readonly probes: readonly UpstreamProbe[];
  readonly requiresSignature: boolean;
}

/** The findings on all upstreams: whether they answer, and whether they sign as expected. */
export function checkUpstreams({ probes, requiresSignature }: UpstreamFacts): readonly Finding[] {
  if (probes.length === 0) {
    return [findingsOn("upstreams").ok("none is set: larder serves stored paths alone")];
  }
  return probes.flatMap((probe) => {
    const reach = reachOf(probe);
    return probe.reach.kind === "reached"
      ? [reach, signatureOf(probe, requiresSignature)]
      : [reach];
  });
}

function reachOf({ url, reach, headerTimeoutMs }: UpstreamProbe): Finding {
  const { ok, warning, failed } = findingsOn(`upstream ${url}`);
  if (reach.kind !== "reached") {
    const advice = ADVICE.find(([sign]) => sign.test(reach.reason))?.[1] ?? ELSE;
    return failed(reach.reason, advice);
  }
  const { latencyMs, hasInfo } = reach;
  const security = url.startsWith("https:") ? "TLS is right" : "without TLS";
  const fact = `answers in ${Math.round(latencyMs)} ms, ${security}` +
    (hasInfo ? "" : ", has no nix-cache-info");
  if (!hasInfo) return warning(fact, "check the path of its URL: a binary cache has one");
  if (latencyMs > headerTimeoutMs / SLOW_PART) {
    return warning(fact, "check the network, or prefer another upstream");
  }
  return ok(fact);
}

function signatureOf({ url, signature }: UpstreamProbe, requiresSignature: boolean): Finding {
  const { ok, warning, failed, notChecked } = findingsOn(`signature of ${url}`);
  if (signature === undefined) {
    const advice = "give this command a store path that it has";
    return notChecked("no store path of it is known here", advice);
  }
  if (signature.kind === "trusted") return ok(`by ${signature.keyName}`);
  if (signature.kind === "failed") return warning(signature.reason, "run this again");
  const { reason, wrongKey } = signature;
  const advice = wrongKey === undefined
    ? "give its key with --cache-upstream-public-key NAME:KEY"
    : wrongKeyHint(wrongKey);
  return (requiresSignature ? failed : warning)(reason, advice);
}
