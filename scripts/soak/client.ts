import { Buffer } from "node:buffer";
import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import { RawConnection, type RawHead, requestText } from "../../tests/support/raw_http.ts";
import type { StoreObject } from "../../tests/support/store_object.ts";
import { resetConnections } from "../../tests/support/resets.ts";
import type { SeededDice } from "../../tests/simulation/seeded_dice.ts";
import type { Tally } from "./report.ts";
import { weighted, type World } from "./world.ts";

export interface ClientDeps {
  readonly dice: SeededDice;
  readonly tally: Tally;
  readonly world: World;
  /** Port of larder; `undefined` while it restarts. */
  readonly port: () => number | undefined;
}

/** A NAR as described by its narinfo, and its right bytes. */
interface Wanted {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** False if the narinfo has a wrong size. */
  readonly isSizeRight: boolean;
}

/** A request without an answer for so long is larder's fault. */
const ANSWER_MAX_MS = 60_000;
const SLOW_PIECE_BYTES = 200_000;
const SLOW_PAUSE_MS = 50;
const KNOWN_MAX = 200;
/** Some ranges begin beyond the end. */
const BEYOND_PART = 1.1;
const RESETS = { count: 300, perSecond: 60 } as const;
const STALL_MS = 5_000;

/** A client that acts at random, with bad manners at times, and checks every byte. */
export class Client {
  readonly #deps: ClientDeps;
  readonly #known: Wanted[] = [];
  readonly #acts = [
    { weight: 30, do: () => this.#narinfo() },
    { weight: 4, do: () => this.#absent() },
    { weight: 30, do: () => this.#whole() },
    { weight: 10, do: () => this.#range() },
    { weight: 8, do: () => this.#leave() },
    { weight: 5, do: () => this.#abort() },
    { weight: 3, do: () => this.#slow() },
    { weight: 3, do: () => this.#head() },
    { weight: 2, do: () => this.#change("POST", "/pin/") },
    { weight: 3, do: () => this.#change("DELETE", "/pin/") },
    { weight: 2, do: () => this.#change("DELETE", "/") },
    { weight: 0.1, do: () => this.#reset() },
    { weight: 1, do: () => this.#stall() },
    { weight: 1, do: () => this.#garbage() },
  ];

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  /** Never throws for larder's faults: those go to the tally. */
  async act(): Promise<void> {
    try {
      await weighted(this.#deps.dice, this.#acts).do();
    } catch (error) {
      // The process was killed, or is not there yet.
      if (!(error instanceof Error && GONE.includes(error.name))) throw error;
      this.#deps.tally.count("connection refused or reset");
    }
  }

  async #narinfo(): Promise<void> {
    const { dice, tally, world } = this.#deps;
    const object = dice.pick(world.objects);
    await this.#ask("GET", `/${object.storePathHash}.narinfo`, {}, async ({ status, reader }) => {
      const text = new TextDecoder().decode(await reader.read());
      if (status !== 200 || !reader.isComplete) {
        return this.#outcome("narinfo", status, reader.isComplete);
      }
      const line = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1] ?? "";
      const bytes = (await world.filesOf(object)).get(line("Compression"));
      const url = line("URL");
      if (bytes === undefined || url === "" || !isOf(object, line)) {
        return tally.wrong(`narinfo of ${object.baseName}:\n${text}`);
      }
      if (this.#known.length === KNOWN_MAX) this.#known.shift();
      const size = line("FileSize");
      const isSizeRight = size === "" || Number(size) === bytes.length;
      this.#known.push({ path: `/${url}`, bytes, isSizeRight });
      this.#outcome("narinfo", status, true);
    });
  }

  async #absent(): Promise<void> {
    const path = `/${String(this.#deps.dice.below(1_000)).padStart(32, "0")}.narinfo`;
    await this.#ask("GET", path, {}, async ({ status, reader }) => {
      await reader.read();
      if (status === 200) this.#deps.tally.wrong(`${path}: nobody has it, and it is served`);
      this.#outcome("unknown narinfo", status, reader.isComplete);
    });
  }

  async #whole(): Promise<void> {
    await this.#nar(async ({ status, reader }, wanted) => {
      await this.#check(status, { ...wanted, got: await reader.read() }, reader.isComplete);
      this.#outcome("NAR", status, reader.isComplete);
    });
  }

  async #range(): Promise<void> {
    const { dice, tally } = this.#deps;
    const wanted = this.#someKnown();
    if (wanted === undefined) return await this.#narinfo();
    const { path, bytes, isSizeRight } = wanted;
    const first = dice.below(Math.ceil(bytes.length * BEYOND_PART));
    const end = Math.min(first + 1 + dice.below(bytes.length), bytes.length);
    const range = { Range: `bytes=${first}-${Math.max(first, end - 1)}` };
    await this.#ask("GET", path, range, async ({ status, headers, reader }) => {
      const got = await reader.read();
      // The last byte of a running download waits for its verification; other bytes do not.
      const isKnown = headers.get("x-cache") === "HIT" || end === bytes.length;
      const isWhole = reader.isComplete && (status === 200 || isKnown);
      const part = status === 206 ? { ...wanted, bytes: bytes.subarray(first, end) } : wanted;
      if (status === 416 && first < bytes.length && isSizeRight) {
        tally.wrong(`${path}: 416 within it`);
      }
      if (status !== 416) await this.#check(status, { ...part, got }, isWhole);
      this.#outcome("range", status, reader.isComplete);
    });
  }

  async #leave(): Promise<void> {
    await this.#nar(async ({ status, reader }, wanted) => {
      const got = await reader.read(1 + this.#deps.dice.below(wanted.bytes.length));
      await this.#check(status, { ...wanted, got }, false);
      this.#deps.tally.count("NAR: left early");
    });
  }

  async #abort(): Promise<void> {
    const { dice, world, tally } = this.#deps;
    const path = dice.happens(0.5)
      ? `/${dice.pick(world.objects).storePathHash}.narinfo`
      : this.#someKnown()?.path;
    if (path === undefined) return;
    await using connection = await this.#connect();
    await connection?.send(requestText("GET", path));
    tally.count("left without an answer");
  }

  async #slow(): Promise<void> {
    await this.#nar(async ({ status, reader }, wanted) => {
      const parts: Bytes[] = [];
      for (let isMore = true; isMore;) {
        const part = await reader.read(SLOW_PIECE_BYTES);
        parts.push(part);
        isMore = part.length === SLOW_PIECE_BYTES && !reader.isComplete;
        await clock.pause(SLOW_PAUSE_MS);
      }
      const got = await new Blob(parts).bytes();
      await this.#check(status, { ...wanted, got }, reader.isComplete);
      this.#outcome("NAR, read slowly", status, reader.isComplete);
    });
  }

  async #head(): Promise<void> {
    const wanted = this.#someKnown();
    if (wanted === undefined) return;
    await this.#ask("HEAD", wanted.path, {}, async ({ status, headers }) => {
      const length = headers.get("content-length");
      // A pass-through has the upstream's length, which may be wrong.
      const isKept = headers.get("x-cache") === "HIT";
      if (status === 200 && isKept && Number(length) !== wanted.bytes.length) {
        this.#deps.tally.wrong(`${wanted.path}: HEAD says ${length} bytes`);
      }
      this.#outcome("HEAD", status, true);
    });
  }

  async #change(method: string, prefix: string): Promise<void> {
    const { dice, world } = this.#deps;
    const path = `${prefix}${dice.pick(world.objects).storePathHash}.narinfo`;
    await this.#ask(method, path, {}, async ({ status, reader }) => {
      await reader.read();
      this.#outcome(`${method} ${prefix}`, status, reader.isComplete);
    });
  }

  async #reset(): Promise<void> {
    const port = this.#deps.port();
    if (port === undefined) return;
    await resetConnections(port, RESETS);
    this.#deps.tally.count("300 resets, 60 a second");
  }

  /** Sends a narinfo request, or half of one, and reads nothing. */
  async #stall(): Promise<void> {
    const { dice, world, tally } = this.#deps;
    await using connection = await this.#connect();
    const text = requestText("GET", `/${dice.pick(world.objects).storePathHash}.narinfo`);
    await connection?.send(dice.happens(0.5) ? text : text.slice(0, dice.below(text.length)));
    await clock.pause(dice.below(STALL_MS));
    tally.count("stalled");
  }

  /** Sends bytes that are no request, or half of one. */
  async #garbage(): Promise<void> {
    const { dice, tally } = this.#deps;
    await using connection = await this.#connect();
    if (connection === undefined) return;
    const text = requestText("POST", this.#pinPath(), { "Transfer-Encoding": "chunked" });
    const bytes = new TextEncoder().encode(`${text}5\r\nhello\r\n0\r\nX: y\r\n\r\n`);
    for (let count = 1 + dice.below(4); count > 0; count--) {
      bytes[dice.below(bytes.length)] = dice.below(256);
    }
    await connection.send(bytes);
    const { status } = await connection.answer();
    if (status >= 500) tally.wrong(`garbage: status ${status}`);
    tally.count(`garbage: ${status}`);
  }

  #pinPath(): string {
    const { dice, world } = this.#deps;
    return `/pin/${dice.pick(world.objects).storePathHash}.narinfo`;
  }

  async #nar(use: (answer: RawHead, wanted: Wanted) => Promise<void>): Promise<void> {
    const wanted = this.#someKnown();
    if (wanted === undefined) return await this.#narinfo();
    await this.#ask("GET", wanted.path, {}, (answer) => use(answer, wanted));
  }

  #someKnown(): Wanted | undefined {
    return this.#known.length === 0 ? undefined : this.#deps.dice.pick(this.#known);
  }

  async #ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    use: (answer: RawHead) => Promise<void>,
  ): Promise<void> {
    const { tally } = this.#deps;
    await using connection = await this.#connect();
    if (connection === undefined) return;
    let lack = "head";
    const late = () => tally.wrong(`${method} ${path}: no ${lack} after ${ANSWER_MAX_MS} ms`);
    const timer = setTimeout(late, ANSWER_MAX_MS);
    try {
      await connection.send(requestText(method, path, headers));
      const answer = await connection.answer({ isHead: method === "HEAD" });
      lack = `end of ${answer.status}, ${answer.headers.get("x-cache")},`;
      if (answer.status >= 500) tally.wrong(`${method} ${path}: status ${answer.status}`);
      await use(answer);
    } finally {
      clearTimeout(timer);
    }
  }

  async #connect(): Promise<RawConnection | undefined> {
    const port = this.#deps.port();
    if (port !== undefined) return await RawConnection.open(port);
    await clock.pause(SLOW_PAUSE_MS);
  }

  /** Checks whole answers only: larder detects a wrong file at its end at the latest. */
  async #check(status: number, answer: Got, isWhole: boolean): Promise<void> {
    const { tally } = this.#deps;
    if (status !== 200 && status !== 206) return;
    const { path, bytes: wanted, got } = answer;
    tally.answeredBytes += got.length;
    const isRight = Buffer.compare(wanted.subarray(0, got.length), got) === 0;
    if (isRight && (!isWhole || got.length === wanted.length)) return;
    if (!isWhole) {
      tally.count("wrong bytes, not yet known to be: cut, left, or a range");
    } else if (isRight) {
      tally.wrong(`${path}: ${got.length} bytes that look whole, of ${wanted.length}`);
    } else {
      tally.wrong(`${path}: ${status} with ${got.length} wrong bytes, of ${wanted.length}`);
    }
  }

  #outcome(what: string, status: number, isComplete: boolean): void {
    const end = status === 0 ? "no answer" : `${status}${isComplete ? "" : ", cut"}`;
    this.#deps.tally.count(`${what}: ${end}`);
  }
}

interface Got extends Wanted {
  readonly got: Bytes;
}

const GONE = ["ConnectionRefused", "ConnectionReset", "BrokenPipe", "NotConnected", "Http"];

function isOf(object: StoreObject, line: (key: string) => string): boolean {
  return line("StorePath") === object.storePath &&
    line("NarHash") === `sha256:${object.narHash}` &&
    line("References") === object.references.join(" ");
}
