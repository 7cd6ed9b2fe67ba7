import { distance } from "fastest-levenshtein";

/** The candidate that `word` was probably meant to be; `undefined` when none is alike. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = lettersOf(word);
  const [best] = [...candidates]
    .map((candidate) => ({ candidate, score: scoreOf(plain, lettersOf(candidate)) }))
    .filter(({ score, candidate }) => score <= scoreMax(plain, lettersOf(candidate)))
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

// Half of what is said behind a group that both name: the group itself makes nothing alike.
function scoreMax(word: string, candidate: string): number {
  const group = /^[^-]+-/.exec(candidate)?.[0] ?? "";
  const shared = word.startsWith(group) ? group.length : 0;
  return (Math.max(word.length, candidate.length) - shared) / 2;
}

function lettersOf(spelling: string): string {
  return spelling.toLowerCase().replace(/^-+/, "").replaceAll(/[._]/g, "-");
}
