// Bundles each entry into app/static/, or into the directory that is given as argument.
import { build } from "esbuild";
import { copyFile, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { light } from "./light.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = resolve(process.argv[2] ?? `${here}/../app/static`);
const shared = {
  absWorkingDir: here,
  outdir,
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
};

await rm(`${outdir}/chunks`, { recursive: true, force: true }); // their names change with their content
const { metafile } = await build({
  ...shared,
  metafile: true,
  entryPoints: { page: "src/page/main.tsx", admin: "src/admin/main.tsx" },
  format: "esm",
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
});
// for pages of somebody else: one classic script, which loads the button, which loads the panel
await build({ ...shared, entryPoints: { widget: "src/widget/main.ts" }, format: "iife" });
await rm(`${outdir}/widget`, { recursive: true, force: true });
await build({
  ...shared,
  entryPoints: { "widget/widget": "src/widget/widget.tsx" },
  format: "esm",
  splitting: true,
  chunkNames: "widget/[name]-[hash]",
  plugins: [light],
});
// esbuild imports its helpers for CommonJS everywhere, which highlight.js alone uses
for (const name of await readdir(`${outdir}/widget`)) {
  const text = await readFile(`${outdir}/widget/${name}`, "utf8");
  await writeFile(`${outdir}/widget/${name}`, text.replace(/import"\.\/chunk-\w+\.js";/g, ""));
}
await copyFile(`${here}/src/widget/widget.mjs`, `${outdir}/widget.mjs`);
for (const name of ["page", "admin"]) {
  // the browser fetches what a script imports together with it, not after it
  const output = Object.entries(metafile.outputs).find(([file]) => file.endsWith(`/${name}.js`))[1];
  const imported = output.imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => `static/chunks/${basename(path)}`);
  const links = imported.map((path) => `<link rel="modulepreload" href="${path}">\n`).join("");
  const html = await readFile(`${here}/src/${name}/${name}.html`, "utf8");
  await writeFile(`${outdir}/${name}.html`, html.replace(/(?=<link rel="preload"|<\/head>)/, links));
}
await copyFile(`${here}/src/page/icon.svg`, `${outdir}/icon.svg`);
