import assert from "node:assert/strict";
import { test } from "node:test";

import { escape, rulePageHtml } from "../src/rulePage";
import { rulesInHover, rulesOf } from "../src/rules";

function page(markdown: string, name = "a-rule"): string {
  return rulePageHtml({ name, code: "W7000", url: "https://example.org", markdown }, "n0nce");
}

function body(markdown: string): string {
  return page(markdown).split("<main>")[1] ?? "";
}

test("the policy allows nothing but the page's own style", () => {
  const html = page("text");
  assert.ok(html.includes(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-n0nce'">`));
  assert.equal(html.match(/<style nonce="n0nce">/g)?.length, 1);
  assert.doesNotMatch(html, /\bstyle="/);
});

test("HTML in a text stays text", () => {
  const html = body('a <img src=x onerror="alert(1)"> and <script>alert(1)</script>');
  assert.doesNotMatch(html, /<(?:img|script)/);
  assert.ok(html.includes("&lt;script&gt;alert(1)&lt;/script&gt;"));
});

test("code is escaped, in diffs too", () => {
  const html = body("````diff\n-x = '</code><b>'\n+x = \"<i>\"\n context & more\n````\n");
  assert.ok(html.includes("<del>-x = &#39;&lt;/code&gt;&lt;b&gt;&#39;</del>"));
  assert.ok(html.includes("<ins>+x = &quot;&lt;i&gt;&quot;</ins>"));
  assert.ok(html.includes(" context &amp; more"));
  assert.ok(body("````python\n<b>\n````\n").includes("<code>&lt;b&gt;\n</code>"));
});

test("the name cannot leave the title", () => {
  assert.ok(page("text", "</title><script>").includes("<title>&lt;/title&gt;&lt;script&gt; (W7000)</title>"));
});

test("links lead to https or nowhere, and nothing is loaded", () => {
  assert.ok(body("[a](https://example.org/x)").includes('<a href="https://example.org/x">a</a>'));
  for (const address of ["javascript:alert(1)", "command:workbench.action.quit", "file:///etc/passwd", "http://example.org", "data:text/html,x", "rules.md"]) {
    assert.doesNotMatch(body(`[a](${address})`), /<a /, address);
  }
  assert.doesNotMatch(body("![a](https://example.org/x.png)"), /<img/);
});

test("every sign that HTML gives a meaning is escaped", () => {
  assert.equal(escape(`<>&"'`), "&lt;&gt;&amp;&quot;&#39;");
});

test("rules are told from diagnostics and hovers", () => {
  const link = { value: "optimizer-not-fused", target: "https://example.org" };
  const diagnostics = [{ source: "ldlm-lint", code: link }, { source: "ldlm-lint", code: "a" }, { source: "ldlm-lint", code: link }, { source: "Ruff", code: "E501" }, { source: "ldlm-lint" }];
  assert.deepEqual(rulesOf(diagnostics), ["optimizer-not-fused", "a"]);
  assert.deepEqual(rulesInHover("### one-rule (W7001)\n\ntext\n---\n\n### [other](https://example.org)\n#### deeper"), ["one-rule", "other"]);
  assert.deepEqual(rulesInHover("text ### none"), []);
});
