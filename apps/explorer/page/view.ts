// SPDX-License-Identifier: MIT
// What the views have in common.
import { element } from "./controls";
import { Failure, type Options, type Point, type Report } from "./server";
import type { Control, Settings } from "./settings";
import { short } from "./text";

/** A part of a view that the page shows. */
export interface View {
    readonly controls: Control[];
    /** Makes its charts in `place`. */
    mount(place: HTMLElement, page: Page): void;
    /** Follows the settings. `when` is the time of the event that changed them. */
    update(changed: string, when: number): void;
    /** The commands that compute what is shown, and the same in Python. */
    commands(): string[];
    python(): string;
    csv(): Promise<string>;
    /** Ends what runs. */
    leave(): void;
    /** Buttons beside those of all views. */
    readonly actions?: { label: string; title?: string; run(): void; possible?: () => boolean }[];
}

/** What the page does for a view. */
export interface Page {
    readonly settings: Settings;
    /** One line about what is going on. */
    say(text: string, kind?: "busy" | "error"): void;
    /** The settings were changed by the view: the form and the address follow. */
    settled(): void;
    /** The commands, or what can be done, have changed. */
    refresh(): void;
    /** Opens another view with these settings. */
    open(view: string, chosen: Record<string, string>): void;
}

/** Answers that are on their way are drawn; failures are said. */
export async function tellFailure(page: Page, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
        await work();
    } catch (error) {
        if (signal.aborted) return;
        page.say(error instanceof Failure ? error.message : String(error), "error");
    }
}

export const numberOf = (point: Point, name: string): number => (typeof point[name] === "number" ? (point[name] as number) : NaN);
export const pairs = (report: Report, x: string, y: string): [number, number][] =>
    report.points.map((point) => [numberOf(point, x), numberOf(point, y)]);

/** Answers by what was asked, for curves that stay the same. */
export class Cache {
    private readonly known = new Map<string, Promise<Report>>();

    constructor(private readonly run: (command: string, options: Options) => Promise<Report>) {}

    get(command: string, options: Options): Promise<Report> {
        const key = JSON.stringify([command, options]);
        let found = this.known.get(key);
        if (!found) {
            found = this.run(command, options);
            this.known.set(key, found);
            found.catch(() => this.known.delete(key));
        }
        return found;
    }
}

/** A table of numbers that can be unfolded; filled only while it is open. */
export class Numbers {
    readonly root = element("details", { className: "numbers" }, element("summary", { textContent: "Numbers" }));
    private readonly table = element("table");
    private rows: Point[] = [];
    private columns: string[] = [];

    constructor() {
        this.root.append(element("div", { className: "scroll", tabIndex: 0 }, this.table));
        (this.root.lastChild as HTMLElement).setAttribute("role", "region");
        (this.root.lastChild as HTMLElement).setAttribute("aria-label", "Numbers");
        this.root.addEventListener("toggle", () => this.fill());
    }

    show(rows: Point[], columns: string[]): void {
        this.rows = rows;
        this.columns = columns;
        this.fill();
    }

    private fill(): void {
        if (!this.root.open) return;
        const cells = (row: Point) =>
            this.columns.map((name) => {
                const value = row[name];
                const cell = element("td", { textContent: typeof value === "string" ? value : short(value) });
                if (typeof value === "number") cell.dataset.value = String(value);
                return cell;
            });
        const head = this.columns.map((name) => {
            const cell = element("th", { textContent: name.replace(/_/g, " ") });
            cell.scope = "col";
            return cell;
        });
        this.table.replaceChildren(
            element("thead", {}, element("tr", {}, ...head)),
            element("tbody", {}, ...this.rows.map((row) => element("tr", {}, ...cells(row)))),
        );
    }
}

/** Numbers that matter, large. */
export class Readout {
    readonly root = element("dl", { className: "readout" });

    show(items: [name: string, value: string, exact?: number | null][]): void {
        this.root.replaceChildren(
            ...items.map(([name, value, exact]) => {
                const number = element("dd", { textContent: value });
                if (typeof exact === "number") number.dataset.value = String(exact);
                return element("div", {}, element("dt", { textContent: name }), number);
            }),
        );
    }
}
