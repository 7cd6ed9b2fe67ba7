import type { Facts } from "../base/failure.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { failureOf } from "./failure_hints.ts";
import type { LastAnswers, LastError } from "./last_answers.ts";
import type { NarinfoReading, RequestKind, UpstreamReading } from "./upstream.ts";
import { upstreamState } from "./upstream_health.ts";

interface UpstreamLogDeps {
  readonly log: Logger;
  /** Has each answer before it is `noted`. */
  readonly lastAnswers: Pick<LastAnswers, "of" | "hintFor">;
  readonly nowMs: () => number;
}

/** A path that made a client wait for an upstream. */
interface ClientWait {
  readonly upstream: string;
  /** Its name, or its hash. */
  readonly path: string;
  readonly ms: number;
  /** What an operator can change. */
  readonly hint: () => string;
}

/** The log of each upstream's failures, by its URL. */
interface UpstreamLog {
  /** Logs an answer that is a failure. The first of an outage is a warning. */
  reading(upstream: string, reading: UpstreamReading, requestId?: string): void;
  /**
   * Ends the outage of an upstream that is up. Logs one that no answer has begun; `error`: why a
   * request for the priority failed just now.
   */
  noted(upstream: string, isUp: boolean, error: unknown): void;
  /** A client has waited for a better upstream. Logs once that it is slow, and once that it is not. */
  waited(wait: ClientWait, isSlow: boolean): void;
  /** The same where no other had an answer sooner. */
  answered(wait: ClientWait, isSlow: boolean): void;
  /** A client waits for the bytes of a NAR. Logs once that it is slow. */
  sends(wait: ClientWait & { readonly nar: string; readonly bytesPerSecond: number }): void;
  /** No client does any more. */
  sendsNoMore(upstream: string): void;
  /** Logs that an upstream went down, for the kind of requests, or is up again. */
  changed(upstream: string, isDown: boolean, kind: RequestKind): void;
}

/**
 * Logs the start and the end of an outage. A missing key is logged once for good, since only the
 * operator can correct that.
 */
export function createUpstreamLog({ log, lastAnswers, nowMs }: UpstreamLogDeps): UpstreamLog {
  const outages = new Map<string, ReturnType<typeof outagesOfOne>>();
  const untrusted = new Set<string>();
  const outagesOfOne = () => ({
    failed: new OutageLog(log, "upstream-answers"),
    down: new OutageLog(log, "upstream-up"),
    slow: new OutageLog(log, "upstream-quick"),
    slowAnswers: new OutageLog(log, "upstream-answers-quickly"),
    slowNars: new OutageLog(log, "upstream-sends-quickly"),
    isPresent: false,
  });
  const outagesOf = (upstream: string) => {
    const known = outages.get(upstream);
    if (known !== undefined) return known;
    const made = outagesOfOne();
    outages.set(upstream, made);
    return made;
  };

  return {
    reading(upstream, reading, requestId) {
      if (reading.kind !== "failed") return;
      const { kind: _, differs: _differs, ...failure } = reading;
      const byRequest = requestId === undefined ? {} : { request_id: requestId };
      const hint = lastAnswers.hintFor(upstream, failure);
      const { wrongKey: _wrongKey, ...told } = failure;
      const facts = { upstream, ...byRequest, ...told, hint };
      if (reading.reason !== "untrusted") {
        const one = outagesOf(upstream);
        one.isPresent = true;
        return one.failed.failed("upstream-failed", facts);
      }
      const { reason: _reason, ...others } = facts;
      const level = untrusted.has(upstream) ? "debug" : "warn";
      untrusted.add(upstream);
      log.event("upstream-untrusted", others, level);
    },

    noted(upstream, isUp, error) {
      const one = outagesOf(upstream);
      const { last, lastNar, lastError } = lastAnswers.of(upstream);
      const evidence = { isUp, sendsNars: isUp, last, lastNar, lastError };
      const state = upstreamState(evidence, nowMs());
      const isOver = state === "up" || state === "untrusted";
      if (isOver) one.failed.worked({ upstream });
      else if (!one.isPresent) {
        const { kind, facts } = failureInLog(
          error,
          lastError,
          (failure) => lastAnswers.hintFor(upstream, failure),
        );
        one.failed.failed(kind, { upstream, ...facts });
      }
      one.isPresent = !isOver;
    },

    waited({ upstream, path, ms, hint }, isSlow) {
      const { slow } = outagesOf(upstream);
      if (!isSlow) return slow.worked({ upstream });
      const facts = { upstream, name: path, waited_ms: ms, hint: hint() };
      slow.failed("upstream-slow", facts);
    },

    answered({ upstream, path, ms, hint }, isSlow) {
      const { slowAnswers } = outagesOf(upstream);
      if (!isSlow) return slowAnswers.worked({ upstream });
      const facts = { upstream, name: path, waited_ms: ms, hint: hint() };
      slowAnswers.failed("upstream-answers-slowly", facts);
    },

    sends({ upstream, path, nar, ms, bytesPerSecond, hint }) {
      const named = path === nar ? { nar } : { nar, name: path };
      const pace = { waited_ms: ms, bytes_per_second: bytesPerSecond };
      const facts = { upstream, ...named, ...pace, hint: hint() };
      outagesOf(upstream).slowNars.failed("upstream-sends-slowly", facts);
    },

    sendsNoMore(upstream) {
      outagesOf(upstream).slowNars.worked({ upstream });
    },

    changed(upstream, isDown, kind) {
      const one = outagesOf(upstream);
      const hint = lastAnswers.of(upstream).lastError?.hint;
      const facts = { upstream, requests: kind, ...hint === undefined ? {} : { hint } };
      if (isDown) one.down.failed("upstream-down", facts);
      else one.down.worked({ upstream });
      one.isPresent = isDown;
    },
  };
}

/** The log line for a failure that no request of a client met. */
function failureInLog(
  error: unknown,
  lastError: LastError | undefined,
  hintFor: (failure: ReturnType<typeof failureOf>) => string,
) {
  if (error === undefined) {
    const { reason, status, hint } = lastError ?? {};
    const known = { reason, status, hint };
    const facts = Object.entries(known).filter(([, value]) => value !== undefined);
    return { kind: "upstream-failed", facts: Object.fromEntries(facts) as Facts } as const;
  }
  const failure = failureOf(error);
  const facts = { ...failure, hint: hintFor(failure) };
  if (failure.reason === "status") return { kind: "upstream-failed", facts } as const;
  const kind = failure.reason === "garbage" ? "upstream-no-cache" : "upstream-silent";
  return { kind, facts } as const;
}

/** Absent narinfos that make an upstream without a nix-cache-info suspicious. */
const ABSENT_MAX = 20;

/** What is known of an upstream's root. */
interface Root {
  hasInfo: boolean | undefined;
  absent: number;
  /** False once a narinfo was there, and behind the warning. */
  isDoubtful: boolean;
}

/** Warns once of each upstream whose URL seems to lack a part of its path. */
export class EmptyRoots {
  readonly #log: Pick<Logger, "event">;
  readonly #roots = new Map<string, Root>();

  constructor(log: Pick<Logger, "event">) {
    this.#log = log;
  }

  /** Notes whether the upstream has a nix-cache-info. */
  described(upstream: string, hasInfo: boolean): void {
    const root = this.#of(upstream);
    root.hasInfo = hasInfo;
    this.#judge(upstream, root);
  }

  note(upstream: string, { kind }: NarinfoReading): void {
    const root = this.#of(upstream);
    if (kind === "found") root.isDoubtful = false;
    else if (kind === "absent") root.absent++;
    if (root.isDoubtful) this.#judge(upstream, root);
  }

  #judge(upstream: string, root: Root): void {
    if (!root.isDoubtful || root.hasInfo !== false || root.absent < ABSENT_MAX) return;
    root.isDoubtful = false;
    this.#log.event("upstream-empty", { upstream, absent: root.absent });
  }

  #of(upstream: string): Root {
    const known = this.#roots.get(upstream);
    if (known !== undefined) return known;
    const root = { hasInfo: undefined, absent: 0, isDoubtful: true };
    this.#roots.set(upstream, root);
    return root;
  }
}
