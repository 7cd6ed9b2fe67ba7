import { EitherSignal } from "../../src/base/either_signal.ts";
import { createHash } from "node:crypto";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { clock } from "../../src/runtime/current.ts";
import type { PlayedNetwork } from "./played_net.ts";
import type { SeededDice } from "./seeded_dice.ts";
import type { WorldObject } from "./world_objects.ts";

/** How a client asks: Nix of three ages. */
export const CLIENT_AGES = ["old", "heads first", "remembers"] as const;

/** How the request for one path ended. */
export type PullEnd = "whole" | "absent" | "broken" | "left";

export interface ClientEvents {
  /** A response, or the lack of one, as the client saw it. */
  answered(facts: AnswerFacts): void;
  /** Something that must never happen. */
  wrong(what: string): void;
}

export interface AnswerFacts {
  readonly kind: "narinfo" | "nar";
  readonly member: string;
  readonly one: WorldObject;
  /** `undefined`: the connection broke before. */
  readonly status: number | undefined;
  readonly startedAtMs: number;
  readonly method: "GET" | "HEAD";
  readonly path: string;
}

export interface ClientParts {
  readonly name: string;
  readonly age: typeof CLIENT_AGES[number];
  readonly network: Pick<PlayedNetwork, "send">;
  readonly dice: SeededDice;
  readonly events: ClientEvents;
  /** The longest wait for a response, or for more of it. Default: Nix's five minutes. */
  readonly patienceMs?: number;
}

/** Nix tries a NAR so often. */
const TRIES_MAX = 5;

/** Nix gives up a connection without any byte after this time. */
const PATIENCE_MS = 300_000;

/** A Nix client that checks every byte that it gets. */
export class WorldClient {
  readonly #parts: ClientParts;
  /** URLs of NARs by store path hash, of narinfos that it has read once. */
  readonly #remembered = new Map<string, string>();

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  get #patienceMs(): number {
    return this.#parts.patienceMs ?? PATIENCE_MS;
  }

  /** Requests one path from a member. `leaves`: fires when the client has enough. */
  async pull(member: string, one: WorldObject, leaves: AbortSignal): Promise<PullEnd> {
    const { age } = this.#parts;
    const hash = one.object.storePathHash;
    try {
      let url = age === "remembers" ? this.#remembered.get(hash) : undefined;
      if (url === undefined) {
        if (age === "heads first") {
          const head = await this.#narinfo(member, one, { method: "HEAD", leaves });
          if (head === undefined) return "absent";
        }
        url = await this.#narinfo(member, one, { method: "GET", leaves });
        if (url === undefined) return "absent";
        this.#remembered.set(hash, url);
      }
      const end = await this.#nar(member, one, { url, leaves });
      if (end !== "whole") this.#remembered.delete(hash);
      return end;
    } catch (error) {
      if (leaves.aborted) return "left";
      if (error instanceof TypeError || error instanceof DOMException) return "broken";
      throw error;
    }
  }

  /** The NAR's URL; `undefined`: absent. */
  async #narinfo(
    member: string,
    one: WorldObject,
    { method, leaves }: { readonly method: "GET" | "HEAD"; readonly leaves: AbortSignal },
  ): Promise<string | undefined> {
    const { object } = one;
    const path = `/${object.storePathHash}.narinfo`;
    const response = await this.#send("narinfo", { member, one, path, method, leaves });
    if (response.status === 404) return undefined;
    if (response.status !== 200) {
      this.#parts.events.wrong(`narinfo ${object.baseName}: status ${response.status}`);
      throw new TypeError("an unexpected status");
    }
    if (method === "HEAD") return "";
    const text = new TextDecoder().decode(await this.#read(response));
    const narinfo = parseNarinfo(text);
    const isRight = narinfo.narHash === object.narHash && narinfo.narSize === object.narSize &&
      narinfo.references.join() === object.references.join();
    if (!isRight) this.#parts.events.wrong(`narinfo ${object.baseName} has wrong signed facts`);
    return narinfo.url;
  }

  async #nar(
    member: string,
    one: WorldObject,
    { url, leaves }: { readonly url: string; readonly leaves: AbortSignal },
  ): Promise<PullEnd> {
    const pieces: Uint8Array[] = [];
    let received = 0;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (tries > 0) await clock.pause(250 * 2 ** tries, leaves);
      leaves.throwIfAborted();
      try {
        const range = received > 0 ? { range: `bytes=${received}-` } : undefined;
        const order = { member, one, path: `/${url}`, method: "GET" as const, leaves };
        const response = await this.#send("nar", { ...order, ...range && { headers: range } });
        if (response.status === 404) return received > 0 ? "broken" : "absent";
        if (response.status === 200 && received > 0) {
          pieces.length = 0;
          received = 0;
        } else if (response.status !== 200 && response.status !== 206) {
          this.#parts.events.wrong(`nar ${url}: status ${response.status}`);
          return "broken";
        }
        const length = Number(response.headers.get("content-length") ?? NaN);
        const before = received;
        await this.#read(response, (piece) => {
          pieces.push(piece);
          received += piece.length;
        });
        if (received - before < length) throw new TypeError("the body is too short");
        if (this.#isRight(one, pieces)) return "whole";
        // Bytes before a break may come from an upstream that was found to lie. Nix compares hashes.
        if (before === 0) this.#parts.events.wrong(`${url} came whole with wrong bytes`);
        return "broken";
      } catch (error) {
        if (leaves.aborted || !(error instanceof TypeError || error instanceof DOMException)) {
          throw error;
        }
      }
    }
    return "broken";
  }

  /** True if these are a file of the NAR. */
  #isRight({ right }: WorldObject, pieces: readonly Uint8Array[]): boolean {
    const hash = createHash("sha256");
    for (const piece of pieces) hash.update(piece);
    return right.has(hash.digest("hex"));
  }

  async #send(kind: "narinfo" | "nar", order: SendOrder): Promise<Response> {
    const { network, name, events } = this.#parts;
    const { member, one, path, method, headers = {}, leaves } = order;
    const startedAtMs = clock.nowMs();
    const facts = { kind, member, one, startedAtMs, method, path };
    using patience = clock.deadline(this.#patienceMs);
    const signal = new EitherSignal(leaves, patience.signal).signal;
    try {
      const url = new URL(`http://${member}${path}`);
      const response = await network.send(name, {
        method,
        ...{ url, signal },
        headers: new Headers(headers),
      });
      events.answered({ ...facts, status: response.status });
      if (response.status !== 200 && response.status !== 206) await response.body?.cancel();
      return response;
    } catch (error) {
      if (!leaves.aborted) events.answered({ ...facts, status: undefined });
      if (patience.signal.aborted) {
        events.wrong(`${kind} ${path}: no answer for ${this.#patienceMs} ms`);
      }
      throw error;
    }
  }

  /** All bytes. Rejects where the body breaks, or is silent for too long. */
  async #read(
    response: Response,
    each: (piece: Uint8Array) => void = () => undefined,
  ): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    const reader = response.body?.getReader();
    for (;;) {
      const next = reader && await clock.within(reader.read(), this.#patienceMs);
      if (reader !== undefined && next === undefined) {
        this.#parts.events.wrong(`a body was silent for ${this.#patienceMs} ms`);
        await reader.cancel();
        throw new TypeError("the body stalled");
      }
      if (next === undefined || next.done) break;
      pieces.push(next.value);
      each(next.value);
    }
    return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
  }
}

interface SendOrder {
  readonly member: string;
  readonly one: WorldObject;
  readonly path: string;
  readonly method: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  readonly leaves: AbortSignal;
}
