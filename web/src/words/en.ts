// All that the page says, apart from what it was told; another language is another file of this shape.
import { desk } from "./en/desk";
import { labs } from "./en/labs";
import { page } from "./en/page";
import { runs } from "./en/runs";

export const en = { ...page, ...labs, ...runs, ...desk } as const;
