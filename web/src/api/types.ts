// The types of the API, made of its own description (`npm run types`); nothing of them is left in what browsers get.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Me = Schemas["Me"];
export type Lab = Schemas["Lab"];
export type WholeLab = Schemas["WholeLab"];
export type Version = Schemas["Version"];
export type Told = Schemas["Told"];
export type Drawing = Schemas["Drawing"];
export type LabChecked = Schemas["LabChecked"];
export type Run = Schemas["Run"];
export type RunState = Run["state"];
export type RunStatus = Schemas["RunStatus"];
export type Clock = Schemas["Clock"];
export type LinksShown = Schemas["LinksShown"];
export type ChangeTaken = Schemas["ChangeTaken"];
export type FaultsShown = Schemas["FaultsShown"];
export type FaultsTaken = Schemas["FaultsTaken"];
export type RunFile = Schemas["File"];
export type Example = Schemas["Example"];
export type Template = Schemas["Template"];
export type Positions = Schemas["Positions"];
export type Somebody = Schemas["Somebody"];
export type Granted = Schemas["Granted"];
export type TerminalShown = Schemas["TerminalShown"];
export type Token = Schemas["Token"];
export type TokenMade = Schemas["TokenMade"];
export type Entry = Schemas["Entry"];
