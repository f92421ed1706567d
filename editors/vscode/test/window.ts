/** A window of VS Code in a headless browser, served by code-server, with the built extension. */

import assert from "node:assert/strict";
import * as childProcess from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

import { type BrowserContext, chromium, type Frame, type Page } from "playwright-core";

const TIMEOUT_MS = 60_000;

/** code-server with the extension installed, and a browser for its windows. */
export class CodeServer {
  readonly home = fs.mkdtempSync(path.join(os.tmpdir(), "ldlm-lint-session-"));
  /** Addresses of other machines that a window asked for something. */
  readonly foreign = new Set<string>();
  private port = 0;
  private process: childProcess.ChildProcess | undefined;
  private browser: BrowserContext | undefined;

  /** `program` is code-server's `out/node/entry.js`, `extensions` are .vsix files. */
  async start(program: string, extensions: readonly string[]): Promise<void> {
    const common = [program, "--config", this.file("config.yaml", "auth: none\n"), "--user-data-dir", path.join(this.home, "data"), "--extensions-dir", path.join(this.home, "extensions")];
    childProcess.execFileSync(process.execPath, [...common, ...extensions.flatMap((extension) => ["--install-extension", extension])]);
    this.port = await freePort();
    this.process = childProcess.spawn(process.execPath, [...common, "--bind-addr", `127.0.0.1:${this.port}`, "--disable-telemetry", "--disable-update-check"], { stdio: "ignore" });
    await until("code-server answers", async () => (await fetch(this.address("/healthz")).catch(() => undefined))?.ok);
    this.browser = await chromium.launchPersistentContext(path.join(this.home, "profile"), {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      viewport: { width: 1280, height: 800 },
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    this.browser.setDefaultTimeout(TIMEOUT_MS / 3);
    this.browser.on("request", (request) => {
      const url = new URL(request.url());
      if (/^https?:$/.test(url.protocol) && url.hostname !== "127.0.0.1") {
        this.foreign.add(url.origin);
      }
    });
  }

  file(name: string, text: string): string {
    const file = path.join(this.home, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  async open(folder: string): Promise<Window> {
    assert.ok(this.browser);
    const page = await this.browser.newPage();
    await page.goto(this.address(`/?folder=${folder}`));
    await page.locator(".explorer-folders-view .monaco-list-row").first().waitFor({ timeout: TIMEOUT_MS });
    return new Window(page);
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    const ended = new Promise((resolve) => this.process?.on("exit", resolve));
    this.process?.kill();
    await ended;
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  private address(rest: string): string {
    return `http://127.0.0.1:${this.port}${rest}`;
  }
}

export class Window {
  constructor(readonly page: Page) {}

  /** The text of the extension's status bar item. */
  async status(): Promise<string> {
    const item = this.page.locator('[id="ldlm-lint.ldlm-lint.ldlmLint.status"]');
    return (await item.count()) === 0 ? "" : (await item.innerText()).trim();
  }

  statusBecomes(text: string): Promise<unknown> {
    return until(`the status is ${JSON.stringify(text)}`, async () => (await this.status()) === text, () => this.status());
  }

  /** Opens a file of the folder from the explorer. */
  async openFile(name: string): Promise<void> {
    await this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).dblclick();
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
  }

  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.page.locator(".quick-input-widget input").first().fill(`>ldlm-lint: ${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  }

  /** The line of the active editor that has some words. */
  line(words: string): ReturnType<Page["locator"]> {
    return this.page.locator(".editor-instance .view-line", { hasText: words }).first();
  }

  /** Puts the cursor on a word. */
  async clickWord(word: string): Promise<void> {
    await this.page.locator(".editor-instance .view-line span:not(:has(span))", { hasText: word }).first().click();
  }

  /** Replaces the text of the active editor. */
  async type(text: string): Promise<void> {
    await this.page.locator(".editor-instance .view-lines").first().click();
    await this.page.keyboard.press("Control+A");
    await this.page.keyboard.insertText(text);
  }

  /** The text of the first editor, blanks as they are. */
  async text(): Promise<string> {
    const lines = await this.page.locator(".editor-instance").first().locator(".view-line").allInnerTexts();
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  /** The frame of a webview that shows some words as its main heading. */
  async webview(heading: string | RegExp): Promise<Frame> {
    return until(`a page headed ${heading}`, async () => {
      for (const frame of this.page.frames()) {
        const texts = await frame.locator("h1").allInnerTexts().catch(() => []);
        if (texts.some((text) => (typeof heading === "string" ? text === heading : heading.test(text)))) {
          return frame;
        }
      }
      return undefined;
    });
  }

  async close(): Promise<void> {
    await this.page.close();
  }
}

/** Waits until `found` has a result that is not false. `now` says in the error what there is instead. */
export async function until<T>(what: string, found: () => Promise<T | false | undefined>, now?: () => Promise<string>): Promise<T> {
  const deadline = Date.now() + TIMEOUT_MS;
  while (Date.now() < deadline) {
    const result = await found();
    if (result !== false && result !== undefined) {
      return result;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`waited in vain until ${what}${now === undefined ? "" : `, not ${JSON.stringify(await now())}`}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().on("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
