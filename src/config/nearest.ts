import { distance } from "fastest-levenshtein";

/** The candidate that `word` was probably meant to be; `undefined` when none is alike. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = lettersOf(word);
  const [best] = [...candidates]
    .map((candidate) => ({ candidate, score: scoreOf(plain, lettersOf(candidate)) }))
    .filter(({ score, candidate }) => score <= Math.max(plain.length, candidate.length) / 2)
    .sort((a, b) => a.score - b.score);
  return best?.candidate;
}

/** `, did you mean X?`, or nothing when no candidate is alike. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const best = nearest(word, candidates);
  return best === undefined ? "" : `, did you mean ${best}?`;
}

// A forgotten or extra group ("--upstream-url") is the likeliest slip and costs next to nothing.
function scoreOf(word: string, candidate: string): number {
  const isPart = candidate.endsWith(`-${word}`) || word.endsWith(`-${candidate}`);
  return isPart ? 0.5 : distance(word, candidate);
}

function lettersOf(spelling: string): string {
  return spelling.toLowerCase().replace(/^-+/, "").replaceAll(/[._]/g, "-");
}
