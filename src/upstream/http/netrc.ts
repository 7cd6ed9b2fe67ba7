import { Failure } from "../../base/failure.ts";

export interface Login {
  readonly login: string;
  readonly password: string;
}

/** Logins by host name. */
export interface Netrc {
  /** The login of the first entry for `host`, else that of `default`. */
  find(host: string): Login | undefined;
}

interface NetrcEntry {
  /** `undefined` stands for `default`. */
  readonly machine: string | undefined;
  login: string;
  password: string;
}

/** Tokens, quoted or plain; a `#` token starts a comment that runs to the end of its line. */
const TOKEN_REGEXP = /"((?:[^"\\]|\\.)*)"|(#[^\n]*)|(\S+)/g;

/**
 * Reads a netrc file as curl and Nix do (GNU inetutils manual, "The .netrc file"). It knows
 * `machine`, `default`, `login`, `password` and `account`; a `macdef` runs to the next empty line.
 * Throws a Failure "bad-request" that names the token and its line, never a password.
 */
export function parseNetrc(text: string): Netrc {
  const entries: NetrcEntry[] = [];
  const tokens = tokensOf(text.replace(/(^|\s)macdef[^\n]*\n(?:[^\n]+\n?)*/g, "$1"));
  for (let token = tokens.next(); !token.done; token = tokens.next()) {
    const { value: { text: key, line } } = token;
    const current = entries.at(-1);
    if (key === "default") entries.push({ machine: undefined, login: "", password: "" });
    else if (key === "machine") {
      entries.push({ machine: argument(tokens, key, line), login: "", password: "" });
    } else if (key === "login" || key === "password" || key === "account") {
      if (current === undefined) throw bad(`${key} before any machine`, line);
      const value = argument(tokens, key, line);
      if (key !== "account") current[key] = value;
    } else throw bad("expected machine, default, login, password, account or macdef", line);
  }
  return {
    find: (host) => entries.find(({ machine }) => machine === undefined || machine === host),
  };
}

interface Token {
  readonly text: string;
  readonly line: number;
}

function* tokensOf(text: string): Generator<Token, undefined> {
  for (const match of text.matchAll(TOKEN_REGEXP)) {
    const [, quoted, comment, plain] = match;
    if (comment !== undefined) continue;
    const line = text.slice(0, match.index).split("\n").length;
    yield { text: plain ?? (quoted ?? "").replace(/\\(.)/g, "$1"), line };
  }
  return undefined;
}

function argument(tokens: Iterator<Token, undefined>, key: string, line: number): string {
  const next = tokens.next();
  if (next.done) throw bad(`${key} without a value`, line);
  return next.value.text;
}

function bad(state: string, line: number): Failure {
  return new Failure("bad-request", `Cannot read netrc: ${state} (line ${line})`);
}
