import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import { lruOf } from "../../base/lru.ts";
import { networkOf } from "../../base/network_of.ts";
import { clock } from "../../runtime/current.ts";
import { type Caller, type ClientRequest, includes, type Role } from "../message/message.ts";

/** A configured token, and its holder. */
export interface Token extends Caller {
  readonly secret: string;
}

interface KnownToken extends Caller {
  readonly digest: Uint8Array;
}

/** Spellings of valid `Authorization` headers to remember: one for each user name of Basic. */
const REMEMBERED_MAX = 1_000;

/** Recognizes the configured tokens in `Authorization` headers. Keeps their digests only. */
export class Tokens {
  readonly #known: readonly KnownToken[];
  /**
   * Callers by valid header. A lookup compares text only where V8's randomly seeded hash is equal,
   * so its time reveals nothing about how much of a guess is right.
   */
  readonly #remembered = lruOf<string, Caller>({ countMax: REMEMBERED_MAX });
  readonly roles: ReadonlySet<Role>;

  /** Tokens with one role for each secret: the strongest one. */
  constructor(tokens: readonly Token[]) {
    this.#known = tokens.map(({ secret, ...caller }) => ({
      ...caller,
      digest: secretDigest(secret),
    }))
      .sort((one, other) => includes(one.role, other.role) ? -1 : 1);
    this.roles = new Set(tokens.map(({ role }) => role));
  }

  /** The token's holder; `undefined` for a wrong or an unreadable one. */
  callerOf(authorization: string): Caller | undefined {
    return this.#remembered.get(authorization) ?? this.#compare(authorization);
  }

  /** Compares with every token, in constant time. */
  #compare(authorization: string): Caller | undefined {
    const secret = secretIn(authorization);
    if (secret === undefined) return undefined;
    const digest = secretDigest(secret);
    let found: Caller | undefined;
    for (const { digest: known, name, role } of this.#known) {
      if (timingSafeEqual(digest, known)) found ??= { name, role };
    }
    if (found === undefined) return undefined;
    this.#remembered.set(authorization, found);
    return found;
  }
}

const SCHEME_REGEXP = /^(bearer|basic) +([!-~]+)$/i;

/** The token in a Bearer header, or the password in a Basic one, which Nix sends from netrc. */
function secretIn(authorization: string): string | undefined {
  const [, scheme = "", given = ""] = SCHEME_REGEXP.exec(authorization) ?? [];
  if (scheme === "") return undefined;
  if (/^bearer$/i.test(scheme)) return given;
  const pair = Buffer.from(given, "base64").toString("latin1");
  const colon = pair.indexOf(":");
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

function secretDigest(secret: string): Uint8Array {
  return createHash("sha256").update(secret, "latin1").digest();
}

/** Limit of remembered addresses; beyond it, the one that failed longest ago is forgotten. */
const ADDRESSES_MAX = 10_000;

/** Each failure costs so much of an address's time. */
const FAILURE_MS = 1_000;

/** Failures in a row that cost nothing: a client may have an old token. */
const FREE_MS = 10 * FAILURE_MS;

const DELAY_MAX_MS = 5_000;

/**
 * Slows answers to wrong tokens by their address. Right tokens never come here, so an attacker
 * slows no client behind the same proxy.
 */
export class FailedTokens {
  readonly #nowMs: () => number;
  /** Times when all failures of a network are paid for. */
  readonly #paidAtMs = lruOf<string, number>({ countMax: ADDRESSES_MAX });

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a failure; returns the delay of its answer. */
  delayMs(peer: string): number {
    const network = networkOf(peer);
    const nowMs = this.#nowMs();
    const paidAtMs = Math.max(nowMs, this.#paidAtMs.get(network) ?? 0) + FAILURE_MS;
    const debtMs = Math.min(paidAtMs - nowMs, FREE_MS + DELAY_MAX_MS);
    this.#paidAtMs.set(network, nowMs + debtMs);
    return Math.max(0, debtMs - FREE_MS);
  }

  /**
   * Notes a failure, and waits for as long, unless the client leaves. The server bounds how many
   * wait: each has a connection of its own, which is the first to make room.
   */
  async slow(request: ClientRequest): Promise<void> {
    const delayMs = this.delayMs(request.peer ?? "");
    if (delayMs === 0) return;
    request.heldBack?.();
    await clock.pause(delayMs, request.signal);
  }
}
