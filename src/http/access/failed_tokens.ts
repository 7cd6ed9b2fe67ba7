import { lruOf } from "../../base/lru.ts";
import { networkOf } from "../../base/network_of.ts";
import { clock } from "../../runtime/current.ts";
import type { ClientRequest } from "../message/client_request.ts";

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
