// Light or dark: as the system has it, until somebody chooses.

const KEY = "dilaton.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

class Theme {
  private chosen = $state(localStorage.getItem(KEY));
  private systemIsDark = $state(system.matches);

  constructor() {
    system.addEventListener("change", (event) => {
      this.systemIsDark = event.matches;
      this.show();
    });
    this.show();
  }

  get isDark(): boolean {
    return this.chosen === null ? this.systemIsDark : this.chosen === "dark";
  }

  turn(): void {
    this.chosen = this.isDark ? "light" : "dark";
    localStorage.setItem(KEY, this.chosen);
    this.show();
  }

  private show(): void {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
  }
}

export const theme = new Theme();

/** A colour of the theme, for what draws on a canvas of its own. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
