import { SYSTEM_NET } from "../../src/runtime/system_net.ts";
import { generateSecretKey, parsePublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { createUpstreamClient } from "../../src/upstream/http/upstream_fetch.ts";
import { HttpNarinfoFetcher } from "../../src/upstream/http/http_narinfo_source.ts";
import type { NarinfoFetcher } from "../../src/upstream/http/narinfo_fetcher.ts";
import {
  crowdNarinfos,
  settingsOf,
  workerNarinfos,
  type WorkerParts,
} from "../support/crowd_narinfos.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { checkContract } from "./contract.ts";
import {
  type Fetch,
  narinfoFetcherClauses,
  type NarinfosScene,
  OBJECTS,
} from "./narinfo_fetcher_contract.ts";

const secretKey = generateSecretKey("larder.test");

type Opener = (opened: AsyncDisposableStack, parts: WorkerParts) => Promise<NarinfoFetcher>;

const openers: Readonly<Record<string, Opener>> = {
  HttpNarinfoFetcher: async (opened, parts) => onThisThread(opened, parts),

  "WorkerNarinfos for a crowd": async (opened, parts) =>
    (await crowdNarinfos(opened.use(workerNarinfos(parts)), parts.upstream)).crowd,

  "WorkerNarinfos for a lone narinfo": async (opened, parts) =>
    opened.use(workerNarinfos(parts)).over(parts.upstream.url, onThisThread(opened, parts)),
};

for (const [name, open] of Object.entries(openers)) {
  checkContract({ name, open: () => sceneOf(open) }, narinfoFetcherClauses);
}

async function sceneOf(opener: Opener): Promise<NarinfosScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  const upstream = opened.use(await fakeUpstream({ objects: OBJECTS, stored: true }));
  return {
    ...{ upstream, secretKey },
    open: async (requireSignature) =>
      fetchOf(await opener(opened, { upstream, secretKey, requireSignature })),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function fetchOf(fetcher: NarinfoFetcher): Fetch {
  return ({ storePathHash, headers = {}, isFinal = false, ...watch }) =>
    fetcher.fetch({ storePathHash, headers, isFinal }, {
      signal: new AbortController().signal,
      answered() {},
      busy() {},
      ...watch,
    });
}

function onThisThread(opened: AsyncDisposableStack, parts: WorkerParts): NarinfoFetcher {
  const { upstream, ...rules } = parts;
  const client = createUpstreamClient(SYSTEM_NET, []);
  opened.defer(() => client[Symbol.dispose]());
  const keys = new TrustedKeys([parsePublicKey(upstream.publicKey)]);
  return new HttpNarinfoFetcher({ settings: settingsOf(upstream), client, keys, ...rules });
}
