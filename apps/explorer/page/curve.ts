// SPDX-License-Identifier: MIT
// The learning curve: error against samples.
import { Chart, type Mark, type Series } from "./chart";
import { isSlow, modelControls, modelLabel, modelOptions, usualAlpha, withoutGeneralization } from "./model";
import { Latest, csv, run, type Options, type Report } from "./server";
import type { Control, Settings } from "./settings";
import { commandLine, pythonModel, short } from "./text";
import { Cache, Numbers, pairs, tellFailure, type Page, type View } from "./view";

export const alphaLabel = "α = n/d²";

/** Ranges of alpha. The initial one fits the model, whatever the width. */
export const alphaControl: Control = {
    name: "alpha-max",
    label: "α up to",
    kind: "range",
    initial: (of) => String(usualAlpha(of)),
    lowest: 0.01,
    highest: 100,
    logarithmic: true,
    group: "Axes",
};
const errors: Record<string, string> = {
    estimation_error: "estimation error",
    generalization_error: "generalisation error",
    plugin_generalization_error: "generalisation error, plug-in",
};

export function alphaGrid(of: Settings, points: number): string {
    const highest = of.number("alpha-max");
    return of.on("log-alpha") ? `log:${Number((highest / 1000).toPrecision(4))}:${highest}:${points}` : `0:${highest}:${points}`;
}

export const curveOptions = (of: Settings, points: number): Options => ({
    ...modelOptions(of),
    alpha: alphaGrid(of, points),
    ...(of.text("error") === "estimation_error" ? withoutGeneralization(of) : {}),
});

/** The thresholds of an answer as lines of a chart. */
export function thresholdMarks(report: Report | undefined): Mark[] {
    if (!report) return [];
    const marks: Mark[] = [];
    const names: [string, string][] = [
        ["strong_recovery", "strong recovery"],
        ["information_theoretic", "information-theoretic"],
        ["algorithmic", "algorithmic"],
    ];
    for (const [name, label] of names) {
        const alpha = report[name];
        if (typeof alpha !== "number" || marks.some((mark) => mark.x === alpha)) continue;
        marks.push({ x: alpha, label: `${label}, α = ${short(alpha)}`, brief: `α = ${short(alpha)}` });
    }
    return marks;
}

const mostPins = 6;

export class CurveView implements View {
    readonly controls: Control[] = [
        ...modelControls(),
        {
            name: "error",
            label: "error",
            kind: "choice",
            initial: "estimation_error",
            choices: () => Object.entries(errors),
            group: "Axes",
        },
        alphaControl,
        {
            name: "points",
            label: "points",
            kind: "range",
            initial: (of) => (isSlow(of) ? "16" : "100"),
            lowest: 2,
            highest: 500,
            step: 1,
            group: "Axes",
        },
        { name: "log-alpha", label: "logarithmic α", kind: "toggle", initial: "", group: "Axes" },
        { name: "log-error", label: "logarithmic error", kind: "toggle", initial: "", group: "Axes" },
    ];
    readonly actions = [
        { label: "Pin this curve", title: "Keep it for comparison", run: () => this.pin(curveOptions(this.page.settings, this.points())) },
        { label: "Remove pins", run: () => this.setPins([]), possible: () => this.pins().length > 0 },
        {
            label: "Published hardmax curve",
            title: "The curve that the paper prints, beside the correct one",
            run: () => this.comparePublished(),
        },
    ];
    private page!: Page;
    private chart!: Chart;
    private readonly numbers = new Numbers();
    private readonly latest = new Latest();
    private readonly latestThresholds = new Latest();
    private readonly cache = new Cache(run);
    private curve?: Report;
    private thresholds?: Report;
    private pinned: { options: Options; report: Report }[] = [];

    mount(place: HTMLElement, page: Page): void {
        this.page = page;
        this.chart = new Chart(place, "Learning curve");
        place.append(this.numbers.root);
    }

    private points = (): number => this.page.settings.number("points");

    private pins(): Options[] {
        const text = this.page.settings.text("pins");
        return text ? text.split("|").slice(0, mostPins).map((pin) => Object.fromEntries(new URLSearchParams(pin))) : [];
    }

    private setPins(pins: Options[]): void {
        this.page.settings.choose("pins", pins.slice(-mostPins).map((pin) => new URLSearchParams(pin).toString()).join("|"));
        this.page.settled();
        this.update("pins", performance.now());
    }

    private pin(options: Options): void {
        const others = this.pins().filter((pin) => JSON.stringify(pin) !== JSON.stringify(options));
        this.setPins([...others, options]);
    }

    private comparePublished(): void {
        const { settings } = this.page;
        for (const name of ["attention", "prior", "tokens", "alpha-max", "points"]) settings.forget(name);
        settings.choose("channel", "hardmax");
        settings.choose("log-alpha", "on");
        settings.choose("log-error", "on");
        const published = { channel: "hardmax-as-printed", width: settings.text("width"), alpha: alphaGrid(settings, 30) };
        this.pin(published);
    }

    update(changed: string, when: number): void {
        const { page } = this;
        const options = curveOptions(page.settings, this.points());
        const pins = this.pins();
        if (isSlow(page.settings)) page.say("computing …", "busy");
        this.latest.ask((signal) =>
            tellFailure(page, signal, async () => {
                const start = performance.now();
                const curve = await run("theory", options, signal);
                const took = performance.now() - start;
                this.curve = curve;
                if (changed !== "pins") this.draw();
                // From the event to the picture, for bench/explorer.py.
                requestAnimationFrame(() => performance.measure("followed", { start: when, end: performance.now() }));
                this.askThresholds();
                if (pins.length || this.pinned.length) {
                    this.pinned = await Promise.all(pins.map(async (pin) => ({ options: pin, report: await this.cache.get("theory", pin) })));
                    this.draw();
                }
                const lost = curve.points.filter((point) => !["converged", "exact recovery"].includes(String(point.status)));
                const text = `${curve.points.length} points in ${Math.round(took)} ms`;
                page.say(lost.length ? `${text}; ${lost.length} did not converge, the first at α = ${short(lost[0].alpha)}` : text);
            }),
        );
    }

    private askThresholds(): void {
        const { page } = this;
        this.latestThresholds.ask((signal) =>
            tellFailure(page, signal, async () => {
                this.thresholds = await run("threshold", modelOptions(page.settings), signal);
                this.draw();
            }),
        );
    }

    private draw(): void {
        if (!this.curve) return;
        const { settings } = this.page;
        const what = settings.text("error");
        const current = curveOptions(settings, this.points());
        const series: Series[] = [
            { label: modelLabel(current), colour: 0, kind: "line", points: pairs(this.curve, "alpha", what) },
            ...this.pinned.map(({ options, report }, index): Series => {
                const printed = options.channel === "hardmax-as-printed";
                return {
                    label: modelLabel(options),
                    colour: 1 + (index % mostPins),
                    kind: printed ? "dashes" : "line",
                    points: pairs(report, "alpha", what),
                };
            }),
        ];
        const marks = thresholdMarks(this.thresholds);
        this.chart.draw({
            x: { label: alphaLabel, logarithmic: settings.on("log-alpha") },
            y: { label: errors[what], logarithmic: settings.on("log-error") },
            series,
            marks,
        });
        this.numbers.show(this.curve.points, ["alpha", ...Object.keys(errors), "standard_error", "status"]);
    }

    commands(): string[] {
        const { settings } = this.page;
        return [
            commandLine("theory", curveOptions(settings, this.points())),
            ...this.pins().map((pin) => commandLine("theory", pin)),
            commandLine("threshold", modelOptions(settings)),
        ];
    }

    python(): string {
        const options = curveOptions(this.page.settings, this.points());
        const all = !("estimation-only" in options);
        return (
            pythonModel(options) +
            `curve = bayesaim.theory(prior, channel, ${JSON.stringify(options.alpha)}${all ? ", generalization=True" : ""})\n` +
            `print(curve.alpha, curve.estimation_error${all ? ", curve.generalization_error" : ""})\n` +
            "print(bayesaim.thresholds(prior, channel))\n"
        );
    }

    csv(): Promise<string> {
        return csv("theory", curveOptions(this.page.settings, this.points()));
    }

    leave(): void {
        this.latest.cancel();
        this.latestThresholds.cancel();
    }
}
