import { testUnless, testWhere } from "../support/program.ts";

/** How a test obtains one back end of a port. */
export interface Harness<Port> {
  readonly name: string;
  /** Why this back end cannot run here. Empty or absent: it can. */
  readonly unavailable?: string;
  /** Clauses that this back end is allowed to break, each with the reason. */
  readonly exempt?: Readonly<Record<string, string>>;
  /** A back end that holds nothing, for one clause only. */
  open(): Promise<Port & AsyncDisposable>;
}

/** Promises that every back end of a port keeps, by their sentence. */
export type Clauses<Port> = Readonly<Record<string, (port: Port) => Promise<void>>>;

/**
 * Registers one test for each clause. A back end that cannot run here is an ignored test with the
 * reason in its name. With `REQUIRE_ALL_BACKENDS` it is an error. So is an unknown exemption.
 */
export function checkContract<Port>(harness: Harness<Port>, clauses: Clauses<Port>): void {
  const { name, unavailable = "", exempt = {} } = harness;
  const unknown = Object.keys(exempt).filter((clause) => !Object.hasOwn(clauses, clause));
  if (unknown.length > 0) {
    throw new Error(`Cannot exempt ${name} from clauses that do not exist: ${unknown.join("; ")}`);
  }
  for (const [clause, keep] of Object.entries(clauses)) {
    const register = unavailable === "" ? testWhere : testUnless;
    register(unavailable || (exempt[clause] ?? ""), `${name}: ${clause}`, async () => {
      await using port = await harness.open();
      await keep(port);
    });
  }
}
