import { keyFileOf } from "../../app/key_files.ts";
import { storageFolder } from "../../app/folders.ts";
import { listIn } from "../../nix/nix_conf.ts";
import { checkClient } from "./client_check.ts";
import type { DiagnosisOrder } from "./diagnose.ts";
import type { Finding } from "./finding.ts";
import { findNixClient } from "./nix_client.ts";
import { ownSubstituters } from "./own_substituters.ts";
import type { ServerState } from "./server_check.ts";
import { keyFacts } from "./storage_facts.ts";

/** Compares this machine's own Nix with larder: its address and its keys. */
export async function checkClientHere(
  { settings, target, host }: DiagnosisOrder,
  state: ServerState,
): Promise<readonly Finding[]> {
  const nix = findNixClient(host);
  const url = target?.shown.startsWith("http") ? target.shown : undefined;
  const shown = state.kind === "running" ? state.publicKey : undefined;
  const isSigning = settings["cache.sign-narinfo"] && shown !== null;
  const ofFile = isSigning
    ? await keyFacts(keyFileOf(settings, storageFolder(settings)))
    : undefined;
  const publicKey = shown ?? ofFile?.publicKey;
  const substituters = nix === undefined ? [] : [...listIn(nix.all, "substituters")];
  const own = await ownSubstituters({ substituters, url, publicKey });
  return checkClient({
    nix,
    url,
    publicKey,
    upstreamKeys: settings["cache.upstream-public-key"].map(({ text }) => text),
    isLarder: (substituter) => own.has(substituter),
  });
}
