/** A doc comment whose first word is a pronoun. */
const PRONOUN_REGEXP = /\/\*\*\s*(?:\*\s*)?(What|Who|Whose|Whom)\b/g;

/** Doc comments that begin with a pronoun in place of a noun, one line each. */
export function docBeginProblems(path: string, source: string): readonly string[] {
  return [...source.matchAll(PRONOUN_REGEXP)].map(({ index, 1: word }) => {
    const line = source.slice(0, index).split("\n").length;
    return `${path}:${line}: a doc comment begins with "${word}": begin with a noun`;
  });
}
