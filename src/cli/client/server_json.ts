import type { Fact, Facts } from "../../base/failure.ts";

/** A value in the JSON of a server of any version. Any part of it may be missing. */
export class ServerJson {
  readonly #value: unknown;

  /** `value`: parsed JSON. */
  constructor(value: unknown) {
    this.#value = value;
  }

  /** The value below these names. */
  at(...names: readonly string[]): ServerJson {
    let value = this.#value;
    for (const name of names) value = Object(value)[name];
    return new ServerJson(value);
  }

  get number(): number | undefined {
    return typeof this.#value === "number" ? this.#value : undefined;
  }

  get text(): string | undefined {
    return typeof this.#value === "string" ? this.#value : undefined;
  }

  /** Milliseconds of an ISO 8601 time. */
  get timeMs(): number | undefined {
    const ms = Date.parse(this.text ?? "");
    return Number.isNaN(ms) ? undefined : ms;
  }

  get isTrue(): boolean {
    return this.#value === true;
  }

  /** The words, numbers and flags below it. */
  get facts(): Facts {
    const entries = Object.entries(Object(this.#value));
    return Object.fromEntries(entries.filter((entry): entry is [string, Fact] => isFact(entry[1])));
  }

  get list(): readonly ServerJson[] {
    return Array.isArray(this.#value) ? this.#value.map((one) => new ServerJson(one)) : [];
  }
}

function isFact(value: unknown): value is Fact {
  return ["string", "number", "boolean"].includes(typeof value);
}
