import type { Link } from "./link.ts";

/**
 * Brings together the connections that a listener accepts and what the relay tells of their
 * clients. Until `met` was called with a link, the relay passes nothing on and keeps its end open:
 * its ports are not used again meanwhile, and nobody gets another's client.
 */
export class LinkClients<Client> {
  readonly #met: (link: Link) => void;
  readonly #told = new Map<Link, Client>();
  readonly #accepted = new Map<Link, (client: Client) => void>();

  constructor(met: (link: Link) => void) {
    this.#met = met;
  }

  /** The relay has connected, for this client. */
  told(link: Link, client: Client): void {
    const accepted = this.#accepted.get(link);
    if (accepted === undefined) return void this.#told.set(link, client);
    this.#accepted.delete(link);
    accepted(client);
    this.#met(link);
  }

  /** The listener has accepted; `known` is called with the client, maybe at once, maybe never. */
  accepted(link: Link, known: (client: Client) => void): void {
    const client = this.#told.get(link);
    if (client === undefined) return void this.#accepted.set(link, known);
    this.#told.delete(link);
    known(client);
    this.#met(link);
  }

  /** One of its ends keeps the link no longer. */
  forget(link: Link): void {
    this.#told.delete(link);
    this.#accepted.delete(link);
  }
}
