// Finds sections of the site. The browser and a test run it behind MiniSearch, whose licence is MIT.

const HITS_MAX = 12;
const EXCERPT_MAX = 110;

/** Words of a question that tell nothing. */
const EMPTY_WORDS = new Set(
  ("a an and are be can do does for from get how i in into is it its larder me my of on or set " +
    "should the this to use want what when where which why with").split(" "),
);

/** What people type, and what these documents say: single words without hyphens. */
const SYNONYMS = new Map(
  [
    ["arm64", "aarch64 raspberry"],
    ["availability cluster failover ha replica", "replicas machines"],
    ["401", "forbidden token"],
    ["403 denied", "forbidden"],
    ["dashboard", "grafana"],
    ["delete", "remove evict"],
    ["docker", "container containers"],
    ["expose internet", "public proxy"],
    ["freeze frozen hang hanging stuck", "hangs"],
    ["https ssl", "tls certificate"],
    ["k8s", "kubernetes"],
    ["kubernetes", "helm"],
    ["limit quota", "size max"],
    ["migrate", "moving migration import"],
    ["migration move", "moving import"],
    ["nas qnap", "synology"],
    ["offline", "without internet"],
    ["open", "public"],
    ["password", "token"],
    ["raspberry", "aarch64"],
    ["rotate rotating", "rotation"],
    ["rpi", "raspberry"],
    ["size", "limit max"],
    ["slow", "slowness timeouts"],
    ["tls", "certificate https"],
    ["two", "several"],
    ["update", "upgrade"],
    ["wrong", "mismatch"],
  ].flatMap(([words, others]) => words.split(" ").map((word) => [word, others.split(" ")])),
);

/** Most people ask how to run it, not how it works. */
const CHAPTER_WEIGHTS = { Reference: 0.7, Design: 0.4, Contribution: 0.2 };
/** It names everything, and explains little. */
const PAGE_WEIGHTS = { Changelog: 0.3 };

/** Several words for one. "50 GB" is about a size, whatever its number. */
const PHRASES = [
  [/\bback(?:ing)? up\b/gu, "backup"],
  [/\bhigh(?:ly)?[ -]availab(?:le|ility)\b/gu, "availability"],
  [/\b\d+ ?[kmgt]i?b?\b/gu, "size"],
  [
    /\badd(?:ing)? (?:an? |another |more )?(?:machine|client|laptop|computer|host)s?\b/gu,
    "clients",
  ],
];

/** Finds sections by words of a user. Those whose titles have the words come first. */
// deno-lint-ignore no-unused-vars
function finderOf(sections) {
  const index = new MiniSearch({
    fields: ["title", "page", "text"],
    storeFields: ["title", "page", "chapter", "url", "text"],
    searchOptions: {
      boost: { title: 6, page: 3 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => term.length > 5 ? 0.15 : false,
      weights: { fuzzy: 0.2, prefix: 0.5 },
      boostDocument: (_id, _term, { title, page, chapter }) =>
        // The head of a page tells what all of it is about.
        (title === page ? 1.5 : 1) * (PAGE_WEIGHTS[page] ?? CHAPTER_WEIGHTS[chapter] ?? 1),
    },
  });
  index.addAll(sections.map((section, id) => ({ id, ...section })));

  return function find(question) {
    const words = wordsOf(question);
    if (words.length === 0) return [];
    const queries = words.map((word) => ({
      combineWith: "OR",
      queries: [word, ...(SYNONYMS.get(word) ?? [])],
    }));
    const all = index.search({ combineWith: "AND", queries });
    // A title may have one of the words, and no section all of them.
    const hits = all.length > 0 ? all : index.search({ combineWith: "OR", queries });
    return hits.slice(0, HITS_MAX).map(({ title, page, url, text, terms }) => ({
      title,
      page,
      url,
      excerpt: excerptOf(text, terms),
    }));
  };
}

function wordsOf(question) {
  const text = PHRASES.reduce(
    (rest, [phrase, word]) => rest.replaceAll(phrase, word),
    question.toLowerCase(),
  );
  const words = text.split(/[^\p{L}\p{N}-]+/u).filter((word) => word !== "");
  const telling = words.filter((word) => !EMPTY_WORDS.has(word));
  return [...new Set(telling.length > 0 ? telling : words)];
}

/** The text around the first of the found words. It begins and ends with whole words. */
function excerptOf(text, terms) {
  const lower = text.toLowerCase();
  const places = terms.map((term) => lower.indexOf(term)).filter((at) => at >= 0);
  const at = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 30);
  const whole = (at === 0 ? text : text.slice(text.indexOf(" ", at))).trim();
  return whole.length <= EXCERPT_MAX
    ? whole
    : whole.slice(0, EXCERPT_MAX + 1).replace(/\s+\S*$/u, "");
}
