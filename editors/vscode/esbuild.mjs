// Bundles the extension into out/extension.js, and with --tests each file of tests into out/test/.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { build } from "esbuild";

const shared = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

rmSync("out", { recursive: true, force: true });
const extension = { entryPoints: ["src/extension.ts"], outfile: "out/extension.js", external: ["vscode"] };
const built = await build({ ...shared, ...extension, minify: true, metafile: true });
writeFileSync("out/THIRD-PARTY-NOTICES.txt", notices(Object.keys(built.metafile.inputs)));
if (process.argv.includes("--tests")) {
  const entryPoints = readdirSync("test").filter((name) => /\.(?:test|session)\.ts$/.test(name)).map((name) => `test/${name}`);
  await build({ ...shared, entryPoints, outdir: "out/test", packages: "external", sourcemap: "inline" });
}

/** The licences of the libraries that some files of the bundle belong to: each asks to be handed on with its code. */
function notices(files) {
  const libraries = new Set(files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]).filter(Boolean));
  return [...libraries].sort().map(notice).join(`\n${"-".repeat(80)}\n\n`);
}

function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf-8"));
  const file = readdirSync(folder).find((entry) => /^(?:licen[cs]e|copying)/i.test(entry));
  if (file === undefined || !existsSync(`${folder}/${file}`)) {
    throw new Error(`${name} ${version} (${license}) has no licence file to hand on`);
  }
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf-8").trim()}\n`;
}
