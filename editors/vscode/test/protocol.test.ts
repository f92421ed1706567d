/** A session with the real server, with the settings and requests that the extension makes. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { versionProblem } from "../src/failure";
import { allRules, FIX_ALL, pageOf, safeFixes } from "../src/requests";
import { rulePageHtml } from "../src/rulePage";
import { rulesInHover, rulesOf } from "../src/rules";
import { DEFAULTS, forServer } from "../src/settings";
import { Server } from "./server";

const AMP = `import torch


def step(loss, optimizer):
    scaler = torch.cuda.amp.GradScaler()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
`;
const AMP_FIXED = AMP.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")');
const RULE = "deprecated-amp-api";

let server: Server;

before(async () => {
  server = new Server();
  const answer = await server.initialize(forServer(DEFAULTS));
  assert.equal(answer.serverInfo?.name, "ldlm-lint");
  assert.equal(versionProblem(answer.serverInfo.version), undefined);
  assert.ok(answer.capabilities.notebookDocumentSync);
  await server.open("pyproject.toml", '[tool.ldlm-lint]\ntarget-torch = "2.6"\n');
  await server.open("amp.py", AMP);
});

after(async () => {
  assert.deepEqual(server.messages, []);
  assert.equal(await server.leave(), 0);
});

test("a file that is opened gets its findings", async () => {
  assert.deepEqual(await server.rules("amp.py"), [RULE]);
  const [finding] = server.diagnostics("amp.py");
  assert.equal(finding?.range.start.line, 4);
  assert.match(String(finding.message), /^deprecated: /);
  assert.deepEqual(rulesOf(server.diagnostics("amp.py")), [RULE]);
});

test("hover names the rule that the link explains", async () => {
  const range = server.diagnostics("amp.py")[0]?.range;
  assert.ok(range);
  assert.deepEqual(rulesInHover(await server.hover("amp.py", range)), [RULE]);
});

test("a quick fix mends the file", async () => {
  const range = server.diagnostics("amp.py")[0]?.range;
  assert.ok(range);
  const actions = await server.actions("amp.py", range);
  const fix = actions.find((action) => action.isPreferred);
  assert.equal(fix?.kind, "quickfix");
  assert.match(fix.title, /\(safe fix\)$/);
  assert.ok(actions.some((action) => action.kind === FIX_ALL));
  assert.ok(fix.edit);
  await server.apply("amp.py", fix.edit);
  assert.equal(server.text("amp.py"), AMP_FIXED);
  assert.deepEqual(await server.rules("amp.py"), []);
});

test("all safe fixes at once, and none where there are none", async () => {
  assert.equal(await safeFixes(server.send, server.uri("amp.py")), undefined);
  await server.type("amp.py", AMP + AMP);
  const edit = await safeFixes(server.send, server.uri("amp.py"));
  assert.ok(edit);
  await server.apply("amp.py", edit);
  assert.equal(server.text("amp.py"), AMP_FIXED + AMP_FIXED);
});

test("every rule has a page that is plain HTML", async () => {
  const rules = await allRules(server.send);
  assert.ok(rules.some((rule) => rule.name === RULE && rule.code === "W7801" && rule.consequence === "deprecated" && rule.summary !== ""));
  for (const rule of rules) {
    const page = await pageOf(server.send, rule.name);
    assert.equal(page.code, rule.code);
    const html = rulePageHtml(page, "nonce");
    assert.match(html, new RegExp(`<h1>${rule.name}\\b`));
    assert.ok((html.match(/<h2>/g)?.length ?? 0) >= 3, `${rule.name} has sections`);
    assert.doesNotMatch(html, /<(?:script|img|iframe|object|form)|\son\w+=/i, rule.name);
    for (const [, address] of html.matchAll(/href="([^"]*)"/g)) {
      assert.match(address ?? "", /^https:\/\//, rule.name);
    }
  }
});

test("a name that no rule has is refused with the nearest one", async () => {
  await assert.rejects(pageOf(server.send, "deprecated-amp-apis"), /did you mean "deprecated-amp-api"/);
});

test("the level hides findings, and the project's own level comes back", async () => {
  await server.type("amp.py", AMP);
  assert.deepEqual(await server.rules("amp.py"), [RULE]);
  await server.configure(forServer({ ...DEFAULTS, level: "error" }));
  await server.rules("amp.py", (rules) => rules.length === 0);
  await server.configure(forServer(DEFAULTS));
  await server.rules("amp.py", (rules) => rules.length === 1);
});

test("on saving only: typing changes nothing until the file is saved", async () => {
  await server.configure(forServer({ ...DEFAULTS, run: "onSave" }));
  const count = server.published.length;
  const version = server.version("amp.py");
  await server.until(() => (server.published.length > count ? true : undefined));
  await server.type("amp.py", AMP + AMP);
  // The server is asked about another file and answers, and about this one it has said nothing.
  await server.open("other.py", AMP);
  await server.rules("other.py", (rules) => rules.length === 1);
  assert.ok(server.published.every((message) => message.uri !== server.uri("amp.py") || (message.version ?? 0) <= version));
  await server.save("amp.py");
  assert.deepEqual(await server.rules("amp.py"), [RULE, RULE]);
});
