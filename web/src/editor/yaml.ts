// The text of a lab, behind a small adapter: CodeMirror shows it, others say what it is. It lives in a shadow root, where
// its styles are sheets and no elements, as the page's policy has it.
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { fieldsAt, pathAt, valuesAt, type Schema } from "./schema";

export interface Mistake {
  line: number;
  column: number;
  message: string;
  isDoubt: boolean;
}

export interface TextTold {
  written: (text: string) => void;
  undo: () => void;
  redo: () => void;
  save: () => void;
}

const fromOutside = Annotation.define<boolean>();

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--muted)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13.5px", background: "var(--surface)", color: "var(--text)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-gutters": { background: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { background: "var(--accent-soft) !important" },
  ".cm-tooltip": { background: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--on-accent)" },
  // Marks without pictures, which the policy of the page forbids.
  ".cm-lint-marker": { width: "0.6em", height: "0.6em", borderRadius: "50%", margin: "0.35em auto" },
  ".cm-lint-marker-error": { content: "normal", background: "var(--bad)" },
  ".cm-lint-marker-warning": { content: "normal", background: "var(--warn)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
  ".cm-panels": { background: "var(--sunken)", color: "var(--text)" },
});

export class TextEditor {
  private readonly view: EditorView;
  schema: Schema | null = null;

  constructor(holder: HTMLElement, text: string, label: string, isReadOnly: boolean, told: TextTold) {
    const root = holder.shadowRoot ?? holder.attachShadow({ mode: "open" });
    const place = document.createElement("div");
    place.style.height = "100%";
    root.replaceChildren(place);
    const does = (act: () => void) => () => {
      act();
      return true;
    };
    this.view = new EditorView({
      parent: place,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          drawSelection(),
          bracketMatching(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          indentUnit.of("  "),
          yaml(),
          syntaxHighlighting(colours),
          autocompletion({ override: [(context) => this.complete(context)] }),
          // Undo is the editor's as a whole, since the canvas writes here too.
          keymap.of([
            { key: "Mod-z", run: does(told.undo), preventDefault: true },
            { key: "Mod-y", run: does(told.redo), preventDefault: true },
            { key: "Mod-Shift-z", run: does(told.redo), preventDefault: true },
            { key: "Mod-s", run: does(told.save), preventDefault: true },
            ...searchKeymap,
            ...defaultKeymap,
            indentWithTab,
          ]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorState.readOnly.of(isReadOnly),
          look,
          EditorView.updateListener.of((update) => {
            const isOurs = update.transactions.some((one) => one.annotation(fromOutside));
            if (update.docChanged && !isOurs) told.written(update.state.doc.toString());
          }),
        ],
      }),
    });
    // By the keyboard, too, a long text is scrolled.
    this.view.scrollDOM.tabIndex = 0;
  }

  show(text: string): void {
    const now = this.view.state.doc.toString();
    if (now === text) return;
    let from = 0;
    const most = Math.min(now.length, text.length);
    while (from < most && now[from] === text[from]) from++;
    let tail = 0;
    while (tail < most - from && now[now.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
    const changes = { from, to: now.length - tail, insert: text.slice(from, text.length - tail) };
    this.view.dispatch({ changes, annotations: fromOutside.of(true) });
  }

  mark(mistakes: readonly Mistake[]): void {
    const { doc } = this.view.state;
    const found = mistakes.map((mistake): Diagnostic => {
      const line = doc.line(Math.min(Math.max(1, mistake.line), doc.lines));
      const from = Math.min(line.to, line.from + Math.max(0, mistake.column - 1));
      const word = /^[^\s,}\]]+/.exec(doc.sliceString(from, line.to));
      const to = Math.min(line.to, from + (word?.[0].length ?? 0));
      return { from, to, severity: mistake.isDoubt ? "warning" : "error", message: mistake.message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }

  goTo(line: number): void {
    const { doc } = this.view.state;
    const place = doc.line(Math.min(Math.max(1, line), doc.lines)).from;
    this.view.dispatch({ selection: { anchor: place }, effects: EditorView.scrollIntoView(place, { y: "center" }) });
  }

  focus(): void {
    this.view.focus();
  }

  close(): void {
    this.view.destroy();
  }

  private complete(context: CompletionContext): CompletionResult | null {
    const word = context.matchBefore(/[\w-]*/);
    if (!this.schema || !word || (word.from === word.to && !context.explicit)) return null;
    const text = context.state.doc.toString();
    const before = context.state.doc
      .lineAt(context.pos)
      .text.slice(0, word.from - context.state.doc.lineAt(context.pos).from);
    const path = pathAt(text, word.from);
    const key = /([A-Za-z_][\w-]*): *$/.exec(before);
    if (key) {
      const options = valuesAt(this.schema, [...path, key[1]!]).map((label) => ({ label }));
      return options.length ? { from: word.from, options } : null;
    }
    const options = fieldsAt(this.schema, path).map((field) => ({
      label: field.name,
      info: field.help || undefined,
      apply: `${field.name}: `,
    }));
    return options.length ? { from: word.from, options } : null;
  }
}
