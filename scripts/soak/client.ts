import { messageOf } from "../../src/base/failure.ts";
import { clock } from "../../src/runtime/current.ts";
import type { SeededDice } from "../../tests/simulation/seeded_dice.ts";
import { CLIENT_AGES, WorldClient } from "../../tests/simulation/world_client.ts";
import { RawConnection, requestText } from "../../tests/support/raw_http.ts";
import { resetConnections } from "../../tests/support/resets.ts";
import type { Tally } from "./report.ts";
import { weighted, type World } from "./world.ts";

export interface ClientDeps {
  readonly dice: SeededDice;
  readonly tally: Tally;
  readonly world: World;
  /** Port of larder; `undefined` while it restarts. */
  readonly port: () => number | undefined;
}

/** A response, or more of it, that takes longer is larder's fault. */
const ANSWER_MAX_MS = 60_000;
const AWAY_PAUSE_MS = 50;
const LEAVES_MS = 300;
const RESETS = { count: 300, perSecond: 60 } as const;
const STALL_MS = 5_000;

/** The errors of a process that was killed, or is not there yet. */
const GONE = ["TypeError", "ConnectionRefused", "ConnectionReset", "BrokenPipe", "NotConnected"];

/** A client of the simulated world on a real network, with bad manners at times. */
export class Client {
  readonly #deps: ClientDeps;
  readonly #nix: WorldClient;
  readonly #acts: readonly { readonly weight: number; readonly do: Act }[] = [
    { weight: 70, do: (port) => this.#pull(port, new AbortController().signal) },
    { weight: 15, do: (port) => this.#leave(port) },
    { weight: 2, do: (port) => this.#change(port, "POST", "/pin/") },
    { weight: 3, do: (port) => this.#change(port, "DELETE", "/pin/") },
    { weight: 2, do: (port) => this.#change(port, "DELETE", "/") },
    { weight: 0.1, do: (port) => resetConnections(port, RESETS) },
    { weight: 1, do: (port) => this.#stall(port) },
    { weight: 1, do: (port) => this.#garbage(port) },
  ];

  constructor(deps: ClientDeps) {
    const { dice, tally } = deps;
    this.#deps = deps;
    this.#nix = new WorldClient({
      ...{ name: "soak", age: dice.pick(CLIENT_AGES), dice, patienceMs: ANSWER_MAX_MS },
      network: { send: (_, { url, ...init }) => fetch(url, init) },
      events: {
        answered: ({ kind, method, status = "no answer" }) =>
          tally.count(`${method} ${kind}: ${status}`),
        wrong: (what) => tally.wrong(what),
      },
    });
  }

  /** Never throws for larder's faults: those go to the tally. */
  async act(): Promise<void> {
    const { dice, tally, port } = this.#deps;
    const larder = port();
    if (larder === undefined) return await clock.pause(AWAY_PAUSE_MS);
    try {
      await weighted(dice, this.#acts).do(larder);
    } catch (error) {
      if (error instanceof Error && GONE.includes(error.name)) tally.count("refused or reset");
      else tally.wrong(messageOf(error));
    }
  }

  async #pull(port: number, leaves: AbortSignal): Promise<void> {
    const { dice, world, tally } = this.#deps;
    const end = await this.#nix.pull(`127.0.0.1:${port}`, dice.pick(world.objects), leaves);
    tally.count(`pull: ${end}`);
  }

  async #leave(port: number): Promise<void> {
    await this.#pull(port, AbortSignal.timeout(this.#deps.dice.below(LEAVES_MS)));
  }

  async #change(port: number, method: string, prefix: string): Promise<void> {
    const { tally } = this.#deps;
    const response = await fetch(`http://127.0.0.1:${port}${prefix}${this.#narinfo()}`, { method });
    await response.body?.cancel();
    if (response.status >= 500) tally.wrong(`${method} ${prefix}: status ${response.status}`);
    tally.count(`${method} ${prefix}: ${response.status}`);
  }

  /** Sends a narinfo request, or half of one, and reads nothing. */
  async #stall(port: number): Promise<void> {
    const { dice, tally } = this.#deps;
    await using connection = await RawConnection.open(port);
    const text = requestText("GET", `/${this.#narinfo()}`);
    await connection.send(dice.happens(0.5) ? text : text.slice(0, dice.below(text.length)));
    await clock.pause(dice.below(STALL_MS));
    tally.count("stalled");
  }

  /** Sends bytes that are no request, or half of one. */
  async #garbage(port: number): Promise<void> {
    const { dice, tally } = this.#deps;
    await using connection = await RawConnection.open(port);
    const text = requestText("POST", `/pin/${this.#narinfo()}`, { "Transfer-Encoding": "chunked" });
    const bytes = new TextEncoder().encode(`${text}5\r\nhello\r\n0\r\nX: y\r\n\r\n`);
    for (let count = 1 + dice.below(4); count > 0; count--) {
      bytes[dice.below(bytes.length)] = dice.below(256);
    }
    await connection.send(bytes);
    const { status } = await connection.answer();
    if (status >= 500) tally.wrong(`garbage: status ${status}`);
    tally.count(`garbage: ${status}`);
  }

  #narinfo(): string {
    const { dice, world } = this.#deps;
    return `${dice.pick(world.objects).object.storePathHash}.narinfo`;
  }
}

type Act = (port: number) => Promise<void>;
