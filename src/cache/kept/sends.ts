import type { NarName } from "../../nix/nar_name.ts";
import { ClientAddresses, type ListedClients } from "../download/client_addresses.ts";

/** A stored NAR file that clients receive. */
export interface Send {
  readonly narName: NarName;
  readonly clients: ListedClients;
}

/** The stored NAR files that are being sent, with their clients. Small ones leave in one piece. */
export class Sends {
  readonly #clients = new Map<NarName, { readonly addresses: ClientAddresses; count: number }>();

  get count(): number {
    return this.#clients.size;
  }

  /** Counts one client more, until the returned function is called. */
  begin(narName: NarName, address: string | undefined): () => void {
    const entry = this.#clients.get(narName) ?? { addresses: new ClientAddresses(), count: 0 };
    this.#clients.set(narName, entry);
    entry.count++;
    const listed = entry.addresses.enter(address);
    return () => {
      listed[Symbol.dispose]();
      if (--entry.count === 0) this.#clients.delete(narName);
    };
  }

  list(countMax: number): readonly Send[] {
    return [...this.#clients].slice(0, countMax)
      .map(([narName, { addresses }]) => ({ narName, clients: addresses.listed() }));
  }
}
