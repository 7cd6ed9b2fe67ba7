import type { Settings } from "../config/options.ts";
import type { NamedToken } from "../config/kinds/token.ts";
import type { Role } from "../http/message/message.ts";
import type { Token } from "../http/access/tokens.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A shorter token may be guessed, however late the answers are. */
const SHORT_CHARS = 16;

/** Warns of each token that an attacker could guess. */
export function warnOfShortTokens(tokens: readonly Token[], log: Pick<Logger, "event">): void {
  for (const { name, role, secret } of tokens) {
    if (secret.length >= SHORT_CHARS) continue;
    log.event("token-short", { token: name, role });
  }
}

/** The configured tokens of clients. One without a name has that of its role. */
export function tokensOf(settings: Settings): readonly Token[] {
  const named = (role: Role, given: readonly NamedToken[] = []) =>
    given.map(({ name = role, secret }): Token => ({ name, role, secret }));
  return [
    ...named("read", settings["cache.get-token"]),
    ...named("write", settings["cache.put-token"]),
    ...named("admin", settings["cache.admin-token"]),
  ];
}

/** Warns of each secret that several roles have: its holder has the strongest one. */
export function warnOfSharedTokens(tokens: readonly Token[], log: Pick<Logger, "event">): void {
  const bySecret = Map.groupBy(tokens, ({ secret }) => secret);
  for (const holders of bySecret.values()) {
    const roles = new Set(holders.map(({ role }) => role));
    if (roles.size < 2) continue;
    log.event("token-of-several-roles", {
      tokens: holders.map(({ name, role }) => `${name} (${role})`).join(", "),
    });
  }
}
