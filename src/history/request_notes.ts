import type { EndedRequest, OpenPull } from "./open_pulls.ts";

/** Requests that are noted before their pulls are told. Some 100 bytes each. */
const NOTES_MAX = 2_048;

/** Numbers of a stored narinfo: bytes, start, end, and whether it is the client's last. */
const NUMBERS = 4;

/**
 * The ended requests that their pulls have not been told of. A request costs a few writes into arrays
 * that are there already; all else waits for `tell`, whose time these bounds limit.
 */
export class RequestNotes {
  readonly #soon: () => void;
  readonly #pulls: (OpenPull | undefined)[] = Array(NOTES_MAX).fill(undefined);
  /** The NAR name of a stored narinfo, or any other request. */
  readonly #requests: (string | EndedRequest)[] = Array(NOTES_MAX).fill("");
  readonly #numbers = new Float64Array(NOTES_MAX * NUMBERS);
  #count = 0;

  /** `soon`: called where `tell` should run without a request that waits for it. */
  constructor(soon: () => void) {
    this.#soon = soon;
  }

  /** A stored narinfo was sent: the most frequent request, which makes no object. */
  narinfoHit(
    pull: OpenPull,
    narName: string,
    bytes: number,
    startedAtMs: number,
    endedAtMs: number,
  ): void {
    const at = this.#place(pull, endedAtMs);
    this.#requests[at] = narName;
    const numbers = this.#numbers;
    const first = at * NUMBERS;
    numbers[first] = bytes;
    numbers[first + 1] = startedAtMs;
    numbers[first + 2] = endedAtMs;
    numbers[first + 3] = pull.running;
  }

  /** Any other request for a path has ended. */
  ended(pull: OpenPull, request: Omit<EndedRequest, "isLast">): void {
    const at = this.#place(pull, request.endedAtMs);
    this.#requests[at] = { ...request, isLast: pull.running === 0 };
  }

  /** Tells the pulls of their requests, in the order in which they ended. */
  tell(): void {
    const pulls = this.#pulls;
    const requests = this.#requests;
    const numbers = this.#numbers;
    for (let at = 0; at < this.#count; at++) {
      const pull = pulls[at];
      const request = requests[at] ?? "";
      pulls[at] = undefined;
      requests[at] = "";
      if (pull === undefined) continue;
      pull.untold--;
      if (typeof request !== "string") {
        pull.ended(request);
        continue;
      }
      const first = at * NUMBERS;
      const startedAtMs = numbers[first + 1] ?? 0;
      const endedAtMs = numbers[first + 2] ?? 0;
      const isLast = numbers[first + 3] === 0;
      pull.narinfoHit(request, numbers[first] ?? 0, startedAtMs, endedAtMs, isLast);
    }
    this.#count = 0;
  }

  #place(pull: OpenPull, endedAtMs: number): number {
    if (this.#count === NOTES_MAX) this.tell();
    pull.running--;
    pull.untold++;
    pull.lastEndAtMs = endedAtMs;
    const at = this.#count++;
    this.#pulls[at] = pull;
    if (this.#count === NOTES_MAX / 2) this.#soon();
    return at;
  }
}
