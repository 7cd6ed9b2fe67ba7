import { ClientAddresses, type ListedClients } from "../base/client_addresses.ts";
import type { NarName } from "../nix/nar_name.ts";

/** A stored NAR file that clients receive. */
export interface Send {
  readonly narName: NarName;
  readonly clients: ListedClients;
}

/** The running reads of one NAR file. */
interface Reads {
  /** Reads and downloads. */
  count: number;
  /** Those of them that send the stored file to a client. Small files leave in one piece. */
  sends: number;
  readonly clients: ClientAddresses;
}

/** Counts the running reads and downloads of each NAR file; eviction spares these files. */
export class ActiveReads {
  readonly #reads = new Map<NarName, Reads>();
  readonly #listeners: (() => void)[] = [];

  names(): ReadonlySet<NarName> {
    return new Set(this.#reads.keys());
  }

  has(narName: NarName): boolean {
    return this.#reads.has(narName);
  }

  /** Counts one read more, until the returned function is called. */
  begin(narName: NarName): () => void {
    return this.#begin(narName, this.#of(narName));
  }

  /** Counts one read more that sends the file to this address, if it is known. */
  beginSend(narName: NarName, address: string | undefined): () => void {
    const reads = this.#of(narName);
    const client = reads.clients.enter(address);
    reads.sends++;
    return this.#begin(narName, reads, () => {
      reads.sends--;
      client[Symbol.dispose]();
    });
  }

  /** The number of files that leave to clients. */
  get sendCount(): number {
    return this.#sent().reduce((count) => count + 1, 0);
  }

  /** At most `countMax` files that leave to clients. */
  sends(countMax: number): readonly Send[] {
    return this.#sent().take(countMax)
      .map(([narName, { clients }]) => ({ narName, clients: clients.listed() }))
      .toArray();
  }

  /** Calls `listener` each time that the last read of a file has ended. */
  whenEnded(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #sent(): IteratorObject<readonly [NarName, Reads]> {
    return this.#reads.entries().filter(([, { sends }]) => sends > 0);
  }

  #of(narName: NarName): Reads {
    const known = this.#reads.get(narName);
    if (known !== undefined) return known;
    const reads: Reads = { count: 0, sends: 0, clients: new ClientAddresses() };
    this.#reads.set(narName, reads);
    return reads;
  }

  #begin(narName: NarName, reads: Reads, ended?: () => void): () => void {
    reads.count++;
    let isActive = true;
    return () => {
      if (!isActive) return;
      isActive = false;
      ended?.();
      if (--reads.count > 0) return;
      this.#reads.delete(narName);
      for (const listener of this.#listeners) listener();
    };
  }
}
