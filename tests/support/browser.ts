import type { Bytes } from "../../src/base/bytes.ts";
import { tempFolder } from "./temp_folder.ts";

/** A keyboard walk and a screenshot need no window, and nothing from outside. */
const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--hide-scrollbars",
  "--disable-lcd-text",
  "--remote-debugging-port=0",
];

type Json = Readonly<Record<string, unknown>>;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
  readonly error?: { readonly message: string };
}

interface SentRequest {
  readonly requestId: string;
  readonly request: { readonly url: string };
}

/** Starts Debian's chromium, with more flags if given. Disposing of it ends it. */
export async function openBrowser(...flags: readonly string[]): Promise<Browser> {
  const folder = tempFolder();
  const child = new Deno.Command("chromium", {
    args: [...FLAGS, ...flags, `--user-data-dir=${folder.path}`, "about:blank"],
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const stderr = child.stderr.pipeThrough(new TextDecoderStream());
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read = (async () => {
    for await (const text of stderr) {
      said += text;
      const port = /DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)\//.exec(said)?.[1];
      if (port !== undefined) resolve(port);
    }
    reject(new Error(`Cannot start chromium: ${said}`));
  })();
  return new Browser(await promise, async () => {
    child.kill("SIGKILL");
    await Promise.all([child.status, read]);
    folder[Symbol.dispose]();
  });
}

export class Browser implements AsyncDisposable {
  readonly #port: string;
  readonly #end: () => Promise<void>;

  constructor(port: string, end: () => Promise<void>) {
    this.#port = port;
    this.#end = end;
  }

  /** A tab of its own, with nothing in it. */
  async tab(): Promise<Tab> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/json/new`, { method: "PUT" });
    const { webSocketDebuggerUrl } = await answer.json();
    const socket = new WebSocket(webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("Cannot speak to chromium"));
    });
    const tab = new Tab(socket);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await tab.send(`${domain}.enable`);
    return tab;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}

/** A tab, driven by the DevTools protocol. */
export class Tab implements AsyncDisposable {
  /** URLs that it requested, in order. */
  readonly requested: string[] = [];
  /** URLs whose answers are there whole, in order. */
  readonly answered: string[] = [];
  /** Its complaints: uncaught errors, and violations of a policy. */
  readonly complaints: string[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<Json>>();
  readonly #urls = new Map<string, string>();
  #loaded = Promise.withResolvers<void>();
  #lastId = 0;
  #password: string | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#read(JSON.parse(data));
  }

  /** Resolves when the page and all that it asks for at once is there. */
  async open(url: string): Promise<void> {
    this.#loaded = Promise.withResolvers();
    await this.send("Page.navigate", { url });
    await this.#loaded.promise;
  }

  /** The value of an expression in the page, or that which it resolves to. */
  async read<Value>(expression: string): Promise<Value> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    }) as { readonly result: { readonly value: Value }; readonly exceptionDetails?: Json };
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  }

  /** Types this password when a server asks, as a user would. */
  async typePassword(password: string): Promise<void> {
    this.#password = password;
    await this.send("Fetch.enable", { handleAuthRequests: true });
  }

  async resize(width: number, height: number): Promise<void> {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    await this.send("Emulation.setDeviceMetricsOverride", metrics);
  }

  async prefer(scheme: "light" | "dark"): Promise<void> {
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  /** The page as PNG, down to this element if given. Its window grows: all of it is laid out. */
  async screenshot(last?: string): Promise<Bytes> {
    const width = await this.read<number>("innerWidth");
    const ofPage = "document.documentElement.scrollHeight";
    for (let height = 0, seen = -1; height !== seen;) {
      seen = height;
      height = await this.read<number>(ofPage);
      await this.resize(width, height);
      await this.read("new Promise((laidOut) => requestAnimationFrame(() => setTimeout(laidOut)))");
    }
    const height = await this.read<number>(
      last === undefined
        ? ofPage
        : `document.querySelector("${last}").getBoundingClientRect().bottom + 16`,
    );
    const clip = { x: 0, y: 0, width, height, scale: 1 };
    const { data } = await this.send("Page.captureScreenshot", { format: "png", clip });
    return Uint8Array.fromBase64(String(data));
  }

  async press(key: "Tab" | "Enter"): Promise<void> {
    const code = { Tab: 9, Enter: 13 }[key];
    const event = { key, code: key, windowsVirtualKeyCode: code };
    const text = key === "Enter" ? { text: "\r" } : {};
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event, ...text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  /** One command of the protocol. */
  send(method: string, params: Json = {}): Promise<Json> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<Json>();
    this.#waiting.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.onclose = resolve);
    this.#socket.close();
    await closed;
  }

  #read({ id = 0, method, params, result, error }: Message): void {
    if (method === "Page.loadEventFired") this.#loaded.resolve();
    if (method === "Network.requestWillBeSent") {
      const { requestId, request } = params as unknown as SentRequest;
      this.#urls.set(requestId, request.url);
      this.requested.push(request.url);
    }
    if (method === "Network.loadingFinished") {
      this.answered.push(this.#urls.get(String(params?.requestId)) ?? "");
    }
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") {
      this.complaints.push(JSON.stringify(params));
    }
    const { requestId } = params ?? {};
    if (method === "Fetch.requestPaused") void this.send("Fetch.continueRequest", { requestId });
    if (method === "Fetch.authRequired") {
      const typed = { username: "any", password: this.#password };
      const authChallengeResponse = { response: "ProvideCredentials", ...typed };
      void this.send("Fetch.continueWithAuth", { requestId, authChallengeResponse });
    }
    const answer = this.#waiting.get(id);
    if (answer === undefined) return;
    this.#waiting.delete(id);
    if (error !== undefined) answer.reject(new Error(error.message));
    else answer.resolve(result ?? {});
  }
}
