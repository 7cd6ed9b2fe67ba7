import type { Link } from "./link.ts";

/**
 * Matches the connections that a listener accepts with the clients that the relay reports. Until
 * the match the relay forwards nothing and keeps its end open. So no other program can reuse its
 * port and get another client's connection.
 */
export class LinkClients<Client> {
  readonly #matched: (link: Link) => void;
  readonly #connected = new Map<Link, Client>();
  readonly #accepted = new Map<Link, (client: Client) => void>();

  constructor(matched: (link: Link) => void) {
    this.#matched = matched;
  }

  /** The relay has connected for this client. */
  connected(link: Link, client: Client): void {
    const accepted = this.#accepted.get(link);
    if (accepted === undefined) return void this.#connected.set(link, client);
    this.#accepted.delete(link);
    accepted(client);
    this.#matched(link);
  }

  /** The listener has accepted; `known` is called with the client, at once, later or never. */
  accepted(link: Link, known: (client: Client) => void): void {
    const client = this.#connected.get(link);
    if (client === undefined) return void this.#accepted.set(link, known);
    this.#connected.delete(link);
    known(client);
    this.#matched(link);
  }

  /** One end of the link is closed. */
  forget(link: Link): void {
    this.#connected.delete(link);
    this.#accepted.delete(link);
  }
}
