import type { PullRow } from "../../src/metadata/history_keeper.ts";

/** Its id, for the address of its timeline. */
export const PULL_ID = "5f3c09ab-71d2";

const HOSTS = ["nix-community.cachix.org", "cache.nixos.org"] as const;
const [SLOW, FAST] = HOSTS;

type Times = readonly [atMs: number, waitedMs: number, sentMs: number] | 0;

const path = (name: string, host: string, mib: number, narinfo: Times, nar: Times) => {
  const index = HOSTS.findIndex((one) => one === host);
  const [first, second] = [narinfo, nar].map((times) =>
    times === 0 || index < 0 ? times : [...times, index]
  );
  return [name, index < 0 ? "hit" : "fetched", Math.round(mib * 2 ** 20), first, second];
};

/** A pull that waited for the second upstream. */
export function pastPull(beganAtMs: number): PullRow {
  const summary = {
    ...{ beganAtMs, ms: 18_200, waitingMs: 13_100, fetchingMs: 2_300, sendingMs: 1_700 },
    pauseMs: 1_100,
    upstreams: [
      { host: SLOW, paths: 2, waitedMs: 12_700, inVain: 0, sentPaths: 1, sentMs: 1_900 },
      { host: FAST, paths: 2, waitedMs: 400, inVain: 0, sentPaths: 2, sentMs: 400 },
    ],
    first: "firefox-145.0",
    paths: { hit: 31, joined: 0, ahead: 8, fetched: 4, absent: 0 },
    ...{ bytes: 412 * 2 ** 20, savedBytes: 380 * 2 ** 20 },
  };
  const paths = [
    HOSTS,
    path("firefox-unwrapped-145.0", SLOW, 23.4, [300, 6_100, 0], [8_300, 3_900, 1_900]),
    path("nss-3.118", SLOW, 2.9, [300, 4_900, 0], 0),
    path("ffmpeg-8.0", FAST, 4.1, [300, 180, 0], [7_100, 210, 460]),
    path("libvpx-1.15.2", FAST, 1.6, [320, 140, 0], [7_400, 90, 240]),
    path("llvm-21.1.2-lib", "", 141.2, 0, [14_400, 0, 920]),
    path("gtk+3-3.24.51", "", 12.8, 0, [15_500, 0, 380]),
    path("mesa-25.2.6", "", 31.7, 0, [16_100, 0, 260]),
    path("glibc-2.42", "", 6.4, 0, [16_600, 0, 140]),
  ];
  return {
    ...{ id: PULL_ID, client: "laptop" },
    summary: JSON.stringify(summary),
    paths: JSON.stringify(paths),
  };
}
