/** Where an answer came from, as the header X-Cache says it. */
export type CacheResult = "HIT" | "MISS" | "JOINED";
