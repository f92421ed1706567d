/** The page of a rule as HTML for a webview: no script, nothing from a network, all text escaped. */

import MarkdownIt from "markdown-it";

import type { RulePage } from "./requests";

const markdown = new MarkdownIt({ html: false, linkify: false }).disable("image");
markdown.validateLink = (url) => url.startsWith("https://");

markdown.renderer.rules["fence"] = (tokens, index) => {
  const token = tokens[index];
  const text = token?.content ?? "";
  return `<pre tabindex="0"><code>${token?.info.trim() === "diff" ? diff(text) : escape(text)}</code></pre>\n`;
};

/** The whole HTML document; `nonce` is a random text that nobody outside can know. */
export function rulePageHtml(page: RulePage, nonce: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${escape(nonce)}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(page.name)} (${escape(page.code)})</title>
<style nonce="${escape(nonce)}">${STYLE}</style>
</head>
<body>
<main>
${markdown.render(page.markdown)}</main>
</body>
</html>
`;
}

export function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}

/** Lines that a fix takes away and puts in, marked for the eye and for screen readers. */
function diff(text: string): string {
  return text.replace(/\n$/, "").split("\n").map(diffLine).join("\n");
}

function diffLine(line: string): string {
  if (line.startsWith("-")) {
    return `<del>${escape(line)}</del>`;
  }
  return line.startsWith("+") ? `<ins>${escape(line)}</ins>` : escape(line);
}

const STYLE = `
body { font: var(--vscode-font-size, 13px)/1.55 var(--vscode-font-family, sans-serif); color: var(--vscode-foreground, #222); background: var(--vscode-editor-background, #fff); padding: 0 1.5rem 3rem; }
main { max-width: 50rem; overflow-wrap: break-word; }
h1 { font-size: 1.6em; font-weight: 600; margin: 1.2em 0 .4em; }
h2 { font-size: 1.2em; font-weight: 600; margin: 1.8em 0 .4em; padding-top: .8em; border-top: 1px solid var(--vscode-panel-border, #8884); }
a { color: var(--vscode-textLink-foreground, #0058ad); }
a:focus-visible, pre:focus-visible { outline: 2px solid var(--vscode-focusBorder, #0058ad); outline-offset: 2px; }
code { font-family: var(--vscode-editor-font-family, monospace); font-size: .95em; color: var(--vscode-textPreformat-foreground, inherit); background: var(--vscode-textPreformat-background, #8882); padding: .1em .3em; border-radius: 3px; }
pre { overflow-x: auto; padding: .8em 1em; border-radius: 4px; background: var(--vscode-textCodeBlock-background, #8881); line-height: 1.45; }
pre code { display: block; width: max-content; min-width: 100%; padding: 0; color: inherit; background: none; }
del, ins { display: inline-block; width: 100%; text-decoration: none; }
del { background: var(--vscode-diffEditor-removedLineBackground, #ff000033); }
ins { background: var(--vscode-diffEditor-insertedLineBackground, #00a00033); }
`;
