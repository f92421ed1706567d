import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, test } from "node:test";

import { withoutLinks } from "../src/messages";
import { written } from "../src/written";
import { COMMAND } from "./server";

const home = fs.mkdtempSync(path.join(os.tmpdir(), "ldlm-lint-report-"));
const report = path.join(home, "report.html");
after(() => fs.rmSync(home, { recursive: true }));

function project(name: string, text: string): string {
  const folder = path.join(home, name);
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, "train.py"), text);
  return folder;
}

test("there is a report with findings, and also where a file could not be read", async () => {
  const folder = project("findings", 'import torch\n\nstate = torch.load("m.pt")\n');
  assert.equal(await written(COMMAND, folder, report, new AbortController().signal), undefined);
  const broken = project("broken", "def train(:\n");
  assert.equal(await written(COMMAND, broken, report, new AbortController().signal), undefined);
  assert.match(fs.readFileSync(report, "utf-8"), /unparsable-file/);
});

test("an older report never passes for a check that failed", async () => {
  fs.writeFileSync(report, "an older one");
  const folder = project("invalid", "");
  fs.writeFileSync(path.join(folder, "ldlm-lint.toml"), "level = 3\n");
  assert.match((await written(COMMAND, folder, report, new AbortController().signal)) ?? "", /exit code 2/);
  assert.equal(fs.existsSync(report), false);
});

test("a cancelled check says so, and a missing command why", async () => {
  const folder = project("any", "");
  assert.match((await written(COMMAND, folder, report, AbortSignal.abort())) ?? "", /cancelled/);
  assert.match((await written(path.join(home, "none"), folder, report, new AbortController().signal)) ?? "", /ENOENT/);
});

test("a name never becomes a link that runs a command", () => {
  assert.equal(withoutLinks("no file [x](command:workbench.action.quit)"), "no file [x] (command:workbench.action.quit)");
});
