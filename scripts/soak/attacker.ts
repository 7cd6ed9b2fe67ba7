import { RawConnection, type RawHead, requestText } from "../../tests/support/raw_http.ts";
import { resetConnections } from "../../tests/support/resets.ts";
import type { Dice } from "./dice.ts";
import type { Tally } from "./tally.ts";
import type { World } from "./world.ts";

export interface AttackerDeps {
  readonly dice: Dice;
  readonly tally: Tally;
  readonly world: World;
  /** Port of larder; `undefined` while it restarts. */
  readonly port: () => number | undefined;
}

const RESETS = { count: 300, perSecond: 60 } as const;
const STALL_MS = 5_000;
const PAUSE_MS = 200;
const PAGE_HEADERS = { "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site" } as const;

/** A hostile client. None of its acts may change anything, or hurt other clients. */
export class Attacker {
  readonly #deps: AttackerDeps;
  readonly #attacks = [
    { weight: 1, do: () => this.#reset() },
    { weight: 8, do: () => this.#stall() },
    { weight: 8, do: () => this.#page() },
    { weight: 4, do: () => this.#rebind() },
    { weight: 4, do: () => this.#proxied() },
    { weight: 8, do: () => this.#garbage() },
  ];

  constructor(deps: AttackerDeps) {
    this.#deps = deps;
  }

  /** Never throws for larder's faults: those go to the tally. */
  async act(): Promise<void> {
    try {
      await this.#deps.dice.weighted(this.#attacks).do();
    } catch {
      // A closed connection is a valid answer.
      this.#deps.tally.count("attack: connection ended");
    }
    await pause(PAUSE_MS);
  }

  async #reset(): Promise<void> {
    const port = this.#deps.port();
    if (port === undefined) return;
    await resetConnections(port, RESETS);
    this.#deps.tally.count("attack: 300 resets, 60 a second");
  }

  /** Sends a NAR request, or half of one, and reads nothing. */
  async #stall(): Promise<void> {
    const { dice, world, tally } = this.#deps;
    await using connection = await this.#connect();
    const { storePathHash } = dice.pick(world.objects);
    const text = requestText("GET", `/${storePathHash}.narinfo`);
    await connection?.send(dice.part() < 0.5 ? text : text.slice(0, dice.below(text.length)));
    await pause(dice.below(STALL_MS));
    tally.count("attack: stalled");
  }

  /** Sends requests as a page of another origin can. */
  async #page(): Promise<void> {
    const path = this.#deps.dice.pick(["/gc?target=0", this.#pinPath()]);
    await this.#expectDenied("page of another origin", ["POST", path, PAGE_HEADERS]);
  }

  /** Sends a foreign host name, as DNS rebinding does. */
  async #rebind(): Promise<void> {
    const headers = { "Host": "evil.example", "Sec-Fetch-Site": "same-origin" };
    const changes = { ...headers, "Origin": "http://evil.example" };
    const request = this.#deps.dice.pick<Request>([
      ["GET", "/stats", headers],
      ["GET", "/pins", headers],
      ["DELETE", this.#pinPath(), changes],
    ]);
    await this.#expectDenied("rebound name", request);
  }

  /** Sends requests as a proxy on this machine does. */
  async #proxied(): Promise<void> {
    const headers = { "X-Forwarded-For": "192.0.2.1" };
    await this.#expectDenied("eviction through a proxy", ["POST", "/gc?target=0", headers]);
  }

  /** Sends bytes that are no request, or half of one. */
  async #garbage(): Promise<void> {
    const { dice, world, tally } = this.#deps;
    await using connection = await this.#connect();
    if (connection === undefined) return;
    const text = requestText("POST", `/pin/${dice.pick(world.objects).storePathHash}.narinfo`, {
      "Transfer-Encoding": "chunked",
    });
    const bytes = new TextEncoder().encode(`${text}5\r\nhello\r\n0\r\nX: y\r\n\r\n`);
    for (let count = 1 + dice.below(4); count > 0; count--) {
      bytes[dice.below(bytes.length)] = dice.below(256);
    }
    await connection.send(bytes);
    const { status } = await connection.answer();
    if (status >= 500) tally.wrong(`garbage: status ${status}`);
    tally.count(`attack: garbage: ${status}`);
  }

  async #expectDenied(what: string, [method, path, headers]: Request): Promise<void> {
    const { tally } = this.#deps;
    await using connection = await this.#connect();
    if (connection === undefined) return;
    await connection.send(requestText(method, path, headers));
    const { status, reader }: RawHead = await connection.answer();
    await reader.read();
    if (status !== 403 && status !== 0) tally.wrong(`${what}: ${method} ${path}: ${status}`);
    tally.count(`attack: ${what}: ${status}`);
  }

  #pinPath(): string {
    const { dice, world } = this.#deps;
    return `/pin/${dice.pick(world.objects).storePathHash}.narinfo`;
  }

  async #connect(): Promise<RawConnection | undefined> {
    const port = this.#deps.port();
    return port === undefined ? undefined : await RawConnection.open(port);
  }
}

type Request = readonly [method: string, path: string, headers: Readonly<Record<string, string>>];

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
