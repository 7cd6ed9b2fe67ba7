/** The libraries of a program and its interpreter, as paths on this machine. */
export function neededFiles(program: string): readonly string[] {
  const { success, stdout } = new Deno.Command("ldd", { args: [program] }).outputSync();
  if (!success) throw new Error(`Cannot find the libraries of ${program}`);
  return [...new TextDecoder().decode(stdout).matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) =>
    path
  );
}
