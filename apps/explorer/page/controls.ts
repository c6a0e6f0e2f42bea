// SPDX-License-Identifier: MIT
// The form of a view: a labelled input for each control.
import { scaleLinear, scaleLog } from "d3-scale";
import { highest, lowest, type Control, type Settings } from "./settings";

export function element<Name extends keyof HTMLElementTagNameMap>(
    name: Name,
    properties: Partial<HTMLElementTagNameMap[Name]> = {},
    ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

const positions = 400; // of a logarithmic slider

/** Three significant digits. */
const rounded = (value: number): string => String(Number(value.toPrecision(3)));

/** Position of the slider for a value, and back. */
function positionScale(control: Control, of: Settings): { scale: Scale; step: number } {
    const ends = [lowest(control, of), highest(control, of)];
    if (control.logarithmic) return { scale: scaleLog().domain(ends).range([0, positions]).clamp(true), step: 1 };
    return { scale: scaleLinear().domain(ends).range(ends).clamp(true), step: control.step ?? 0.01 };
}

/** A form that follows the settings and changes them. `changed` gets the name of the control and when it happened. */
export class Form {
    readonly root = element("form", { className: "controls" });
    private readonly rows = new Map<string, { row: HTMLElement; refresh: () => void }>();

    constructor(
        private readonly settings: Settings,
        private readonly changed: (name: string, when: number) => void,
    ) {
        this.root.addEventListener("submit", (event) => event.preventDefault());
        const groups = new Map<string, HTMLElement>();
        for (const control of settings.controls) {
            const title = control.group ?? "Model";
            if (!groups.has(title)) {
                const group = element("fieldset", {}, element("legend", { textContent: title }));
                groups.set(title, group);
                this.root.append(group);
            }
            groups.get(title)!.append(this.add(control));
        }
        this.refresh();
    }

    private add(control: Control): HTMLElement {
        const id = `control-${control.name}`;
        const row = element("div", { className: `control ${control.kind}` });
        const label = element("label", { htmlFor: id, textContent: control.label });
        const set = (value: string, event: Event) => {
            this.settings.choose(control.name, value);
            this.refresh(event.target as HTMLElement);
            this.changed(control.name, event.timeStamp);
        };
        let refresh: () => void;
        if (control.kind === "choice") {
            const select = element("select", { id });
            select.addEventListener("input", (event) => set(select.value, event));
            refresh = () => {
                const choices = control.choices!(this.settings);
                if (choices.map(([value]) => value).join() !== [...select.options].map((option) => option.value).join())
                    select.replaceChildren(...choices.map(([value, text]) => element("option", { value, textContent: text })));
                select.value = this.settings.text(control.name);
            };
            row.append(label, select);
        } else if (control.kind === "toggle") {
            const box = element("input", { id, type: "checkbox" });
            box.addEventListener("input", (event) => set(box.checked ? "on" : "off", event));
            refresh = () => (box.checked = this.settings.on(control.name));
            row.append(box, label);
        } else {
            const number = element("input", { id: control.kind === "range" ? `${id}-number` : id, type: "number", step: "any" });
            number.addEventListener("input", (event) => {
                if (number.value !== "" && number.checkValidity()) set(number.value, event);
            });
            number.addEventListener("change", () => (number.value = this.settings.text(control.name)));
            row.append(label);
            const limits = () => {
                number.min = String(lowest(control, this.settings));
                number.max = String(highest(control, this.settings));
                if (control.step && Number.isInteger(control.step)) number.step = "1";
                if (document.activeElement !== number) number.value = this.settings.text(control.name);
            };
            if (control.kind === "range") {
                const slider = element("input", { id, type: "range" });
                number.setAttribute("aria-label", `${control.label}, as a number`);
                slider.addEventListener("input", (event) => {
                    const { scale } = positionScale(control, this.settings);
                    set(control.logarithmic ? rounded(scale.invert(Number(slider.value))) : slider.value, event);
                });
                refresh = () => {
                    limits();
                    const { scale, step } = positionScale(control, this.settings);
                    const [low, high] = scale.range();
                    Object.assign(slider, { min: String(low), max: String(high), step: String(step) });
                    if (document.activeElement !== slider || !slider.matches(":active"))
                        slider.value = String(scale(this.settings.number(control.name)));
                    slider.setAttribute("aria-valuetext", this.settings.text(control.name));
                    slider.style.setProperty("--part", String((Number(slider.value) - low) / (high - low)));
                };
                row.append(number, slider);
            } else {
                refresh = limits;
                row.append(number);
            }
        }
        this.rows.set(control.name, { row, refresh });
        return row;
    }

    /** Shows the settings as they are; the input that is being changed keeps its text. */
    refresh(except?: HTMLElement): void {
        for (const control of this.settings.controls) {
            const { row, refresh } = this.rows.get(control.name)!;
            row.hidden = !this.settings.applies(control.name);
            if (!row.hidden && !(except instanceof HTMLInputElement && except.type === "number" && row.contains(except))) refresh();
        }
    }
}
