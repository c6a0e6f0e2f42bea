// SPDX-License-Identifier: MIT
// The settings of a view: what its controls show and its address holds.

/** A number that may depend on other controls. */
export type Bound = number | ((of: Settings) => number);

/** A control. Its name is that of an option of the program, or of a property of the view. */
export interface Control {
    name: string;
    label: string;
    kind: "range" | "choice" | "toggle" | "number";
    /** Value unless another is chosen. It may depend on other controls, above this one. */
    initial: string | ((of: Settings) => string);
    /** Whether there is such a setting. */
    applies?: (of: Settings) => boolean;
    choices?: (of: Settings) => [value: string, label: string][];
    lowest?: Bound;
    highest?: Bound;
    step?: number;
    /** The slider is logarithmic. */
    logarithmic?: boolean;
    /** The group of controls that it belongs to; otherwise that of the model. */
    group?: string;
}

const bound = (value: Bound, of: Settings): number => (typeof value === "function" ? value(of) : value);
export const lowest = (control: Control, of: Settings): number => bound(control.lowest ?? -Infinity, of);
export const highest = (control: Control, of: Settings): number => bound(control.highest ?? Infinity, of);

export class Settings {
    constructor(
        readonly controls: Control[],
        private chosen: Record<string, string> = {},
    ) {}

    private control(name: string): Control | undefined {
        return this.controls.find((control) => control.name === name);
    }

    applies(name: string): boolean {
        const control = this.control(name);
        return control !== undefined && (control.applies?.(this) ?? true);
    }

    initial(name: string): string {
        const control = this.control(name);
        return typeof control?.initial === "function" ? control.initial(this) : control?.initial ?? "";
    }

    /** The value that holds: what was chosen, if it is possible with the other settings. */
    text(name: string): string {
        const control = this.control(name);
        const chosen = this.chosen[name];
        if (!control) return chosen ?? "";
        if (chosen === undefined) return this.initial(name);
        if (control.kind === "choice")
            return control.choices!(this).some(([value]) => value === chosen) ? chosen : this.initial(name);
        if (control.kind === "toggle") return chosen === "on" ? "on" : "";
        const number = Number(chosen);
        if (chosen.trim() === "" || !Number.isFinite(number)) return this.initial(name);
        const bounded = Math.min(Math.max(number, lowest(control, this)), highest(control, this));
        return bounded === number ? chosen : String(bounded);
    }

    number(name: string): number {
        return Number(this.text(name));
    }

    on(name: string): boolean {
        return this.text(name) === "on";
    }

    choose(name: string, value: string): void {
        this.chosen[name] = value;
    }

    forget(name: string): void {
        delete this.chosen[name];
    }

    /** What differs from the initial values, for the address. */
    query(): string {
        const query = new URLSearchParams();
        for (const name of Object.keys(this.chosen)) {
            const known = this.control(name);
            const value = known ? (this.applies(name) ? this.text(name) : this.initial(name)) : this.chosen[name];
            if (value !== (known ? this.initial(name) : "")) query.set(name, value || "off");
        }
        return query.toString();
    }
}
