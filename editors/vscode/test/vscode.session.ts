/**
 * The built extension in VS Code, used as a person does. Needs code-server, which brings VS Code as a web page, and Chromium:
 * CODE_SERVER is the path of code-server's `out/node/entry.js`, CHROMIUM that of the browser, LDLM_LINT that of the command.
 */

import assert from "node:assert/strict";
import * as childProcess from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { after, before, test } from "node:test";

import { COMMAND } from "./server";
import { CodeServer, until, type Window } from "./window";

const AMP = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n";
const RULE = "deprecated-amp-api";
const NOTEBOOK = {
  cells: [{ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source: AMP.trimEnd().split("\n").map((line) => `${line}\n`) }],
  metadata: { language_info: { name: "python" } },
  nbformat: 4,
  nbformat_minor: 5,
};
const FILES = {
  "amp.py": AMP,
  "run.sbatch": "#!/bin/bash\nexport NCCL_ASYNC_ERROR_HANDLING=1\ntorchrun train.py\n",
  "scaling.ipynb": JSON.stringify(NOTEBOOK),
  "pyproject.toml": '[tool.ldlm-lint]\ntarget-torch = "2.6"\n',
};
const READY = "ldlm-lint";

const server = new CodeServer();
const project = path.join(server.home, "project");
const pidFile = path.join(server.home, "pid");
const settings = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  "telemetry.telemetryLevel": "off",
  "extensions.autoCheckUpdates": false,
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
};
let window: Window;

before(async () => {
  const program = process.env["CODE_SERVER"];
  assert.ok(program, "CODE_SERVER must be the path of code-server's out/node/entry.js");
  for (const [name, text] of Object.entries(FILES)) {
    server.file(`project/${name}`, text);
  }
  // The command under test, which leaves its process number.
  script("bin/ldlm-lint", `echo $$ > '${pidFile}'\nPYTHONPATH='${process.env["PYTHONPATH"] ?? ""}' exec '${absolute(COMMAND)}' "$@"`);
  const [extension] = fs.readdirSync(".").filter((name) => name.endsWith(".vsix"));
  assert.ok(extension);
  machine(path.join(server.home, "bin", "ldlm-lint"), settings);
  const python = server.file("python.vsix", "");
  childProcess.execFileSync("npx", ["vsce", "package", "--no-dependencies", "--skip-license", "--out", python], { cwd: path.resolve("test/python-extension") });
  await server.start(program, [path.resolve(extension), python]);
  window = await server.open(project);
});

after(async () => {
  await server.stop();
  assert.deepEqual([...server.foreign], []);
});

test("an open file has its findings, and the status bar their number", async () => {
  await window.openFile("amp.py");
  await window.statusBecomes(`${READY}: 1`);
});

test("hover has the finding, the rule, and a link to its page", async () => {
  await window.line("GradScaler").locator("span:not(:has(span))", { hasText: "GradScaler" }).hover();
  const hover = window.page.locator(".monaco-hover:visible");
  await hover.getByText(`Explain ${RULE}`).waitFor();
  assert.match(await hover.first().innerText(), /deprecated: /);
  await hover.getByText(`Explain ${RULE}`).click();
  const page = await window.webview(`${RULE} (W7801)`);
  await page.getByText("Why it costs", { exact: true }).waitFor();
  const added = await page.locator("ins").first().evaluate((element) => getComputedStyle(element).backgroundColor);
  assert.notEqual(added, "rgba(0, 0, 0, 0)", "the policy lets the page have its style");
  assert.equal(await page.locator("script:not(#_vscodeApiScript)").count(), 0);
});

test("the quick fix menu fixes, explains and ignores", async () => {
  await window.openFile("amp.py");
  await window.clickWord("GradScaler");
  await window.page.keyboard.press("Control+.");
  const menu = window.page.locator(".action-widget");
  await menu.getByText(/\(safe fix\)$/).waitFor();
  const items = (await menu.innerText()).split("\n");
  assert.ok(items.some((item) => item === `Explain ${RULE}`), items.join("; "));
  assert.ok(items.some((item) => item.startsWith(`ignore ${RULE}`)), items.join("; "));
  // The safe fix is the preferred one, which the menu begins with.
  await window.page.keyboard.press("Enter");
  await window.statusBecomes(READY);
  assert.match(await window.text(), /torch\.amp\.GradScaler\("cuda"\)/);
});

test("all safe fixes of a file, and a word where there are none", async () => {
  await window.type(AMP + AMP);
  await window.statusBecomes(`${READY}: 2`);
  await window.command("Apply all safe fixes");
  await window.statusBecomes(READY);
  assert.doesNotMatch(await window.text(), /cuda\.amp/);
  await window.command("Apply all safe fixes");
  await window.page.locator(".notification-toast", { hasText: "no safe fix" }).waitFor();
});

test("settings are taken up at once", async () => {
  await window.type(AMP);
  await window.statusBecomes(`${READY}: 1`);
  workspace({ "ldlmLint.level": "error" });
  await window.statusBecomes(READY);
  workspace({});
  await window.statusBecomes(`${READY}: 1`);
  workspace({ "ldlmLint.enable": false });
  await window.statusBecomes("");
  workspace({});
  await window.statusBecomes(`${READY}: 1`);
});

test("on saving only: findings change when the file is saved", async () => {
  workspace({ "ldlmLint.run": "onSave" });
  await window.page.waitForTimeout(1500);
  await window.type(AMP + AMP);
  await window.page.waitForTimeout(2500);
  assert.equal(await window.status(), `${READY}: 1`);
  await window.page.keyboard.press("Control+S");
  await window.statusBecomes(`${READY}: 2`);
  workspace({});
});

test("a batch job is a shell script, and a notebook has findings in its cells", async () => {
  await window.openFile("run.sbatch");
  await window.statusBecomes(`${READY}: 3`);
  await window.openFile("scaling.ipynb");
  await window.statusBecomes(`${READY}: 4`);
});

test("without a finding at the cursor there is a list of all rules", async () => {
  await window.openFile("pyproject.toml");
  await window.command("Explain rule");
  const input = window.page.locator(".quick-input-widget input").first();
  await window.page.locator(".quick-input-list .monaco-list-row").nth(3).waitFor();
  await input.fill("optimizer-not-fused");
  await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "optimizer-not-fused" }).first().click();
  await window.webview("optimizer-not-fused (R7301)");
});

test("a server that dies is started again", async () => {
  const pid = fs.readFileSync(pidFile, "utf-8").trim();
  process.kill(Number(pid), "SIGKILL");
  await until("another process runs", async () => fs.readFileSync(pidFile, "utf-8").trim() !== pid);
  await window.statusBecomes(`${READY}: 4`);
});

test("the report of the folder is a tab, with its own script and style", async () => {
  await window.command("Show HTML report");
  const report = await window.webview(path.basename(project));
  const fonts = await report.locator("body").evaluate((element) => getComputedStyle(element).fontFamily);
  assert.match(fonts, /system-ui/);
  assert.match(await report.locator("main").innerText(), /Found 4 findings/);
});

test("a click on the status opens the output", async () => {
  await window.page.locator('[id="ldlm-lint.ldlm-lint.ldlmLint.status"]').click();
  await window.page.locator(".part.panel", { hasText: "from the setting ldlmLint.path" }).waitFor();
  await window.close();
});

test("a missing command is said, with what to do", async () => {
  machine("/nowhere/ldlm-lint", settings);
  window = await server.open(project);
  await window.openFile("amp.py");
  const message = window.page.locator(".notification-toast", { hasText: 'names "/nowhere/ldlm-lint", which is not a program' });
  await message.getByText("How to install").waitFor();
  await message.getByText("Try again").waitFor();
  await message.getByText("Open settings").click();
  await window.page.locator(".settings-editor .setting-item-label", { hasText: "Path" }).first().waitFor();
  await window.close();
});

test("the command is that of the selected Python environment", async () => {
  const folder = path.join(server.home, "environments");
  const select = (name: string): string => server.file("environments/.vscode/settings.json", JSON.stringify({ "python.selectedForTests": path.join(server.home, name, "python") }));
  server.file("environments/amp.py", AMP);
  select("bin");
  machine("", settings);
  window = await server.open(folder);
  await window.openFile("amp.py");
  await window.statusBecomes(`${READY}: 1`);
  await window.page.locator('[id="ldlm-lint.ldlm-lint.ldlmLint.status"]').click();
  await window.page.locator(".part.panel", { hasText: "from the selected Python environment" }).waitFor();
  const pid = fs.readFileSync(pidFile, "utf-8");
  fs.cpSync(path.join(server.home, "bin"), path.join(server.home, "other"), { recursive: true });
  select("other");
  await until("the command of the other environment runs", async () => fs.readFileSync(pidFile, "utf-8") !== pid);
  await window.statusBecomes(`${READY}: 1`);
  await window.close();
});

test("a workspace chooses the command only if it is trusted", async () => {
  const ran = path.join(server.home, "ran");
  const chosen = script("untrusted/tool", `touch '${ran}'\nexit 3`);
  server.file("untrusted/amp.py", AMP);
  server.file("untrusted/.vscode/settings.json", JSON.stringify({ "ldlmLint.path": chosen }));
  const command = path.join(server.home, "bin", "ldlm-lint");
  machine(command, { ...settings, "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" });
  const restricted = await server.open(path.join(server.home, "untrusted"));
  await restricted.openFile("amp.py");
  await restricted.statusBecomes(`${READY}: 1`);
  assert.ok(!fs.existsSync(ran));
  await restricted.close();
  machine(command, settings);
  const trusted = await server.open(path.join(server.home, "untrusted"));
  await trusted.page.locator(".notification-toast", { hasText: "ended with exit code 3" }).waitFor();
  assert.ok(fs.existsSync(ran));
  await trusted.close();
});

/** Writes the settings of the user and of the machine, which a window reads when it is opened. */
function machine(command: string, user: Record<string, unknown>): void {
  server.file("data/User/settings.json", JSON.stringify(user));
  server.file("data/Machine/settings.json", JSON.stringify({ "ldlmLint.path": command }));
}

/** Writes the settings of the project, which an open window takes up. */
function workspace(values: Record<string, unknown>): void {
  server.file("project/.vscode/settings.json", JSON.stringify(values));
}

function script(name: string, text: string): string {
  const file = server.file(name, `#!/bin/sh\n${text}\n`);
  fs.chmodSync(file, 0o755);
  return file;
}

function absolute(command: string): string {
  return path.isAbsolute(command) ? command : childProcess.execFileSync("/bin/sh", ["-c", 'command -v "$0"', command], { encoding: "utf-8" }).trim();
}
