import ts from "typescript";

/** Words that no identifier and no file has, and the house's words in their place. */
const REPLACED: ReadonlyMap<string, string> = new Map([
  ["bell", "notifier"],
  ["breather", "time slice"],
  ["condemn", "mark for removal"],
  ["condemned", "marked for removal"],
  ["door", "listener, or target"],
  ["doubt", "test, or uncertain"],
  ["doubtful", "uncertain"],
  ["hearing", "upstream health"],
  ["hungry", "needs input"],
  ["intake", "request reader"],
  ["loosen", "add loose"],
  ["mender", "repairer"],
  ["outlet", "answer writer"],
  ["patience", "wait, retries or timeouts"],
  ["patient", "must wait"],
  ["standing", "upstream health"],
  ["strain", "load"],
  ["strained", "overloaded"],
  ["stray", "orphan"],
  ["tie", "remove loose"],
  ["trouble", "outage log"],
  ["unkept", "pass-through, or not kept"],
]);

/** The borders of words in `camelCase`, `snake_case` and `HTTPAnswer`. */
const BORDER_REGEXP = /[^A-Za-z]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;

/** Problems with the name of a source file and with its identifiers, one line each. */
export function identifierProblems(path: string, source: string): readonly string[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest);
  const lineOf = new Map([[path.slice(path.lastIndexOf("/") + 1), 1]]);
  const visit = (node: ts.Node): void => {
    if ((ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) && !lineOf.has(node.text)) {
      lineOf.set(node.text, file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return [...lineOf].flatMap(([name, line]) => {
    const words = name.split(BORDER_REGEXP).map((word) => word.toLowerCase());
    const word = words.find((one) => REPLACED.has(one));
    return word === undefined
      ? []
      : [`${path}:${line}: "${name}" has "${word}": ${REPLACED.get(word)}`];
  });
}
