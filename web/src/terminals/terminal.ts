// A terminal in a node, behind a small adapter: xterm.js shows it, a WebSocket carries it (docs/server.md). A lost
// connection is made again, from the byte on that was shown last, so that nothing is lost and nothing shown twice. What is
// typed while there is none is sent then.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { API } from "../api/client";
import { colour } from "../state/theme.svelte";
import { linesIn, Typed } from "./typed";

export type Standing = "connecting" | "silent" | "open" | "away" | "over";

const AGAIN_HOST_MS = 1500;
const TAKEN_OVER = 4000;

// xterm.js writes its styles into style elements, which the policy of the page forbids: they become sheets instead.
function withSheets(real: Document): Document {
  return new Proxy(real, {
    get(target, name) {
      if (name === "createElement") {
        return (tag: string) => (tag === "style" ? sheetElement(target) : target.createElement(tag));
      }
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function sheetElement(target: Document): HTMLElement {
  const stand = target.createElement("span");
  stand.hidden = true;
  const sheet = new CSSStyleSheet();
  target.adoptedStyleSheets = [...target.adoptedStyleSheets, sheet];
  Object.defineProperty(stand, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  const { remove } = stand;
  stand.remove = () => {
    target.adoptedStyleSheets = target.adoptedStyleSheets.filter((one) => one !== sheet);
    remove.call(stand);
  };
  return stand;
}

export class NodeTerminal {
  private readonly terminal: Terminal;
  private readonly fitting = new FitAddon();
  private readonly observer: ResizeObserver;
  private socket: WebSocket | null = null;
  private shownBytes = 0;
  private timer = 0;
  private isClosed = false;
  private isOver = false;
  private readonly typed = new Typed();

  constructor(
    holder: HTMLElement,
    private readonly path: string,
    label: string,
    private readonly told: (standing: Standing, words: string) => void,
    private readonly mayPaste: (text: string) => boolean,
    left: () => void,
    /** So many bytes of what was typed reach nobody. */
    private readonly lost: (bytes: number) => void,
  ) {
    this.terminal = new Terminal({
      documentOverride: withSheets(document),
      cursorBlink: false,
      fontSize: 13.5,
      fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
      scrollback: 5000,
      screenReaderMode: true,
    });
    this.terminal.loadAddon(this.fitting);
    this.terminal.open(holder);
    this.terminal.textarea?.setAttribute("aria-label", label);
    this.restyle();
    this.terminal.onData((text) => this.type(text));
    this.terminal.onBinary((text) => this.send(Uint8Array.from(text, (one) => one.charCodeAt(0))));
    this.terminal.onResize(() => this.tellSize());
    // Tab and Escape are the shell's, so that something else leads out for who has no mouse.
    this.terminal.attachCustomKeyEventHandler(({ type, key, shiftKey }) => {
      if (key !== "Escape" || !shiftKey) return true;
      if (type === "keydown") left();
      return false;
    });
    holder.addEventListener("paste", (event) => this.look(event), { capture: true });
    this.observer = new ResizeObserver(() => holder.clientWidth > 0 && this.fitting.fit());
    this.observer.observe(holder);
    this.connect();
  }

  focus(): void {
    this.terminal.focus();
  }

  /** Takes what somebody types, also before there is a connection; Enter is a carriage return. */
  type(text: string): void {
    this.send(new TextEncoder().encode(text));
  }

  restyle(): void {
    this.terminal.options.theme = {
      background: colour("sunken"),
      foreground: colour("text"),
      cursor: colour("text"),
      selectionBackground: colour("accent-soft"),
    };
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.socket?.close();
    this.terminal.dispose();
  }

  /** Several lines that are pasted are commands that run at once: that is asked first. */
  private look(event: ClipboardEvent): void {
    const text = event.clipboardData?.getData("text") ?? "";
    if (linesIn(text) < 2 || this.mayPaste(text)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  private connect(): void {
    this.told("connecting", "");
    const { host, protocol } = location;
    const scheme = protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${host}${API}${this.path}?after=${this.shownBytes}`);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.told(this.shownBytes ? "open" : "silent", "");
      this.fitting.fit();
      this.tellSize();
      for (const bytes of this.typed.take()) socket.send(bytes);
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") {
        if (!this.shownBytes) this.told("open", "");
        this.shownBytes += (data as ArrayBuffer).byteLength;
        this.terminal.write(new Uint8Array(data as ArrayBuffer));
        return;
      }
      const said = JSON.parse(data);
      if (typeof said.from === "number") this.shownBytes = said.from;
      if (typeof said.status === "number") {
        this.end(said.reason || `status ${said.status}`);
      }
    };
    socket.onclose = ({ code, reason }) => {
      if (this.isClosed || this.isOver) return;
      // Whatever the server had a reason for does not become better by asking again.
      if (code >= TAKEN_OVER) return this.end(reason || String(code));
      this.told("away", "");
      this.timer = window.setTimeout(() => this.connect(), AGAIN_HOST_MS);
    };
  }

  private end(why: string): void {
    this.isOver = true;
    this.told("over", why);
    this.lost(this.typed.drop());
  }

  private send(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(bytes);
    else if (!this.isOver) this.lost(this.typed.keep(bytes));
  }

  private tellSize(): void {
    const { rows, cols } = this.terminal;
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ rows, columns: cols }));
  }
}
