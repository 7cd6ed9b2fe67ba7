/**
 * Joins the messages of one turn of the event loop to another thread. A message costs a busy
 * thread about as much as its content does.
 */
export class Outbox<Message> {
  readonly #post: (messages: readonly Message[]) => void;
  #messages: Message[] = [];

  constructor(post: (messages: readonly Message[]) => void) {
    this.#post = post;
  }

  add(message: Message): void {
    // Code that became ready in the same turn runs first: no message waits for another turn.
    if (this.#messages.push(message) === 1) queueMicrotask(() => this.#send());
  }

  #send(): void {
    const messages = this.#messages;
    this.#messages = [];
    this.#post(messages);
  }
}
