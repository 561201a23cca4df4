/** A number of things, which are more than one or not. */
export const counted = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
