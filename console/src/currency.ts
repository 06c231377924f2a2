// The currency of displayed costs. The agent's `prices` have no currency, so the user chooses one,
// which this browser stores.

import { signal } from "@preact/signals";

const KEY = "session-agent.currency";

export const CURRENCIES = ["USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR"] as const;
export type Currency = (typeof CURRENCIES)[number];

export const currency = signal<Currency>(read());

export function chooseCurrency(chosen: Currency): void {
  currency.value = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Without local storage, costs are in dollars again after a reload.
  }
}

/** An amount with its currency. A small amount has two significant digits. */
export function cost(amount: number): string {
  const isSmall = amount !== 0 && Math.abs(amount) < 0.01;
  const digits = isSmall ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat("en", { style: "currency", currency: currency.value, ...digits }).format(amount);
}

function read(): Currency {
  try {
    return CURRENCIES.find((known) => known === localStorage.getItem(KEY)) ?? "USD";
  } catch {
    return "USD";
  }
}
