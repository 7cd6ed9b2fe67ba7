/** Of the package fonts-dejavu-core. */
const FOLDER = "/usr/share/fonts/truetype/dejavu";

/** Lets the browsers that start from now on know the DejaVu fonts alone. */
export function useFonts(folder: string): void {
  Deno.statSync(`${FOLDER}/DejaVuSans-Bold.ttf`);
  const path = `${folder}/fonts.conf`;
  Deno.writeTextFileSync(
    path,
    `<?xml version="1.0"?>
<fontconfig>
  <dir>${FOLDER}</dir>
  <cachedir>${folder}/fonts</cachedir>
  <alias binding="same">
    <family>monospace</family>
    <prefer><family>DejaVu Sans Mono</family></prefer>
  </alias>
  <match>
    <edit name="family" mode="append_last" binding="strong"><string>DejaVu Sans</string></edit>
  </match>
</fontconfig>
`,
  );
  Deno.env.set("FONTCONFIG_FILE", path);
}
