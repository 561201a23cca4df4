// What programs have measured, in a line. Pure; what is not known is left out.
import { quantity, rate } from "./units";

export function resultWords(result: Record<string, unknown> | null): string {
  if (!result) return "";
  const number = (name: string) => (typeof result[name] === "number" ? (result[name] as number) : null);
  const found: string[] = [];
  const throughput = number("throughput_bit_per_s") ?? number("throughput");
  if (throughput !== null) found.push(rate(throughput));
  const rtt = (result["rtt"] ?? result["rtt_s"]) as Record<string, number> | undefined;
  if (rtt && typeof rtt === "object" && typeof rtt["avg"] === "number")
    found.push(`RTT ${(rtt["avg"] * 1e3).toFixed(2)} ms`);
  const loss = number("loss");
  if (loss !== null) found.push(`${(100 * loss).toFixed(loss && loss < 0.01 ? 2 : 0)} % loss`);
  const retransmits = number("retransmits");
  if (retransmits !== null) found.push(`${retransmits} retransmitted`);
  for (const [name, one] of Object.entries(
    (result["own"] ?? {}) as Record<string, { value?: unknown; unit?: unknown }>,
  ))
    if (typeof one?.value === "number")
      found.push(`${name} ${quantity(one.value, one.unit === "1" ? "" : String(one.unit ?? ""))}`);
  return found.join(", ");
}
