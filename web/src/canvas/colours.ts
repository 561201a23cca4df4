// How full a link is, as a colour: from calm to hot, readable without telling red from green, with the width as a second
// sign. Pure.

export interface Fullness {
  colour: string;
  width: number;
}

export const STEPS = [
  { from: 0.0001, light: "#7aa6d8", dark: "#4f78a8" },
  { from: 0.25, light: "#3f7fc4", dark: "#5d9be0" },
  { from: 0.5, light: "#b98a1b", dark: "#d8b04a" },
  { from: 0.8, light: "#cf5a17", dark: "#f0884a" },
  { from: 0.95, light: "#b3261e", dark: "#ff6b60" },
] as const;

export const IDLE = { light: "#aeb4ba", dark: "#565f68" };

export function fullness(share: number | null, isDark: boolean): Fullness {
  const step = share === null ? undefined : STEPS.findLast((one) => share >= one.from);
  const colour = (step ?? IDLE)[isDark ? "dark" : "light"];
  return { colour, width: 2 + 5 * Math.min(1, share ?? 0) };
}
