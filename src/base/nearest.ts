import { distance } from "fastest-levenshtein";

/** Letters that allow one more typo. */
const LETTERS_PER_TYPO = 4;

/** Fewer common words prove too little: every option may end in "path". */
const SHARED_WORDS_MIN = 2;

/**
 * The candidate that `word` misspells; `undefined` if there is none, or several.
 *
 * Each word must be in both, except typos and leading groups. A different word, such as "put" for
 * "delete", is no misspelling, however alike the whole looks.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const typed = wordsOf(word);
  const alike = [...candidates].filter((candidate) => isAlike(typed, wordsOf(candidate)));
  const missed = (candidate: string) => Math.abs(wordsOf(candidate).length - typed.length);
  const fewest = Math.min(...alike.map(missed));
  const [only, ...others] = alike.filter((candidate) => missed(candidate) === fewest);
  return others.length === 0 ? only : undefined;
}

/** `, did you mean X?`, or "" when no candidate is alike. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const best = nearest(word, candidates);
  return best === undefined ? "" : `, did you mean ${best}?`;
}

function isAlike(typed: readonly string[], candidate: readonly string[]): boolean {
  // "host-name" and "hostname".
  if (typed.join("") === candidate.join("")) return true;
  const shared = Math.min(typed.length, candidate.length);
  const extra = typed.slice(0, typed.length - shared);
  const isShort = shared < SHARED_WORDS_MIN && typed.length !== candidate.length;
  // A leading "no" negates the option.
  if (isShort || extra.includes("no")) return false;
  const ends = candidate.slice(candidate.length - shared);
  return typed.slice(extra.length).every((one, at) => isTypo(one, ends[at] ?? ""));
}

/** True for one typo, more in a long word; two swapped letters are one typo. */
function isTypo(typed: string, word: string): boolean {
  const typosMax = Math.max(1, Math.floor(word.length / LETTERS_PER_TYPO));
  const typos = distance(typed, word);
  const isSwapped = typos === 2 && sorted(typed) === sorted(word);
  return typos <= typosMax || isSwapped;
}

function sorted(word: string): string {
  return [...word].sort().join("");
}

function wordsOf(spelling: string): readonly string[] {
  return spelling.toLowerCase().split(/[-._]+/).filter((word) => word !== "");
}
