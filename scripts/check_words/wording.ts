const WORDS_MAX = 25;

/** Paraphrases, and the words of the glossary that stand for them. */
const PARAPHRASES: readonly (readonly [paraphrase: RegExp, better: string])[] = [
  [/\bBell\b/, "Notifier"],
  [/\bBreather\b/, "TimeSlice"],
  [/\bunkept\b/i, "pass-through"],
  [/\bpass(?:ed|es|ing)? (?:\w+ )?on\b/i, "pass-through, or forward"],
  [/\bon (?:its|their) way\b/i, "in flight"],
  [/\bunder way\b/i, "running, or in flight"],
  [/\bkept away\b/i, "refused"],
  [/\basked for\b/i, "requested"],
  [/\btold\b/i, "sent, reported, or called with"],
  [/\blooked at\b/i, "checked, or read"],
  [/\bthe way of an?\b/i, "the actor"],
  [/\b(?:whom|whoever|somebody)\b/i, "the actor"],
  [/\bnobody knows\b/i, "unknown"],
];

/** The blanks between two sentences. */
const SENTENCE_END_REGEXP = /(?<=[.!?][)*]*)(?<!\b(?:e\.g|i\.e|etc)\.)\s+/;

const WORD_REGEXP = /[\w'’./-]*\w/g;

/** A paragraph of prose, and where it begins. */
export interface Prose {
  readonly line: number;
  readonly text: string;
}

/** Problems with the language of a file, one line each. */
export function wordingProblems(path: string, prose: readonly Prose[]): readonly string[] {
  return prose.flatMap(({ line, text }) => {
    // Code and quoted text have words of their own.
    const plain = text.replace(/`[^`]*`|"[^"]*"/g, "Code");
    return [...paraphrasesIn(plain), ...longSentences(plain)]
      .map((problem) => `${path}:${line}: ${problem}`);
  });
}

function paraphrasesIn(text: string): readonly string[] {
  return PARAPHRASES.flatMap(([paraphrase, better]) => {
    const [found] = paraphrase.exec(text) ?? [];
    return found === undefined ? [] : [`"${found}" is a paraphrase of: ${better}`];
  });
}

function longSentences(text: string): readonly string[] {
  return text.split(SENTENCE_END_REGEXP).flatMap((sentence) => {
    const count = sentence.match(WORD_REGEXP)?.length ?? 0;
    const begin = sentence.split(" ", 5).join(" ");
    return count > WORDS_MAX ? [`"${begin} …" has ${count} words, at most ${WORDS_MAX}`] : [];
  });
}
