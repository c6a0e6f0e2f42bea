// SPDX-License-Identifier: MIT
// The phase diagram: error over samples and width.
import { Chart } from "./chart";
import { alphaControl, alphaGrid, alphaLabel, thresholdMarks } from "./curve";
import { HeatMap } from "./heatmap";
import { modelControls, modelLabel, modelNames, modelOptions, withoutGeneralization } from "./model";
import { Latest, csv, run, type Options, type Report } from "./server";
import type { Control } from "./settings";
import { commandLine, pythonModel, short } from "./text";
import { Numbers, numberOf, pairs, tellFailure, type Page, type View } from "./view";

const withoutWidth = ["width", "prior", "exponent"];

export class PhaseView implements View {
    readonly controls: Control[] = [
        ...modelControls(["softmax", "hardmax", "linear", "multi-head"]).filter((control) => !withoutWidth.includes(control.name)),
        alphaControl,
        { name: "width-max", label: "width ρ up to", kind: "range", initial: "1.5", lowest: 0.1, highest: 4, step: 0.1, group: "Axes" },
        { name: "log-alpha", label: "logarithmic α", kind: "toggle", initial: "", group: "Axes" },
        {
            name: "grid",
            label: "grid",
            kind: "choice",
            initial: (of) => (of.applies("attention") && ["self", "causal"].includes(of.text("attention")) ? "12" : "48"),
            choices: () => [12, 24, 48, 72].map((size) => [String(size), `${size} × ${size}`]),
            group: "Axes",
        },
    ];
    readonly actions = [{ label: "Open this curve", title: "As a learning curve of its own", run: () => this.openCurve() }];
    private page!: Page;
    private map!: HeatMap;
    private chart!: Chart;
    private readonly numbers = new Numbers();
    private readonly latest = new Latest();
    private readonly latestCurve = new Latest();
    private answer?: Report;
    private curve?: Report;
    private thresholds?: Report;

    mount(place: HTMLElement, page: Page): void {
        this.page = page;
        this.map = new HeatMap(place, "Smallest error", (alpha, width) => this.pick(alpha, width));
        this.chart = new Chart(place, "Curve of the chosen width");
        place.append(this.numbers.root);
    }

    private mapOptions(): Options {
        const { settings } = this.page;
        const count = settings.number("grid");
        const highest = settings.number("width-max");
        return {
            ...modelOptions(settings),
            alpha: alphaGrid(settings, count),
            width: `${Number((highest / count).toPrecision(3))}:${highest}:${count}`,
        };
    }

    /** The chosen point: a value of the address, or the middle of the map. */
    private selected(): [alpha: number, width: number] {
        const { settings } = this.page;
        const alpha = Number(settings.text("at-alpha")) || 0.35 * settings.number("alpha-max");
        const width = Number(settings.text("at-width")) || Number((settings.number("width-max") / 2).toPrecision(3));
        return [alpha, width];
    }

    private curveOptions(): Options {
        const { settings } = this.page;
        return { ...modelOptions(settings), width: String(Number(this.selected()[1].toPrecision(6))), alpha: alphaGrid(settings, Math.max(48, settings.number("grid"))), ...withoutGeneralization(settings) };
    }

    private pick(alpha: number, width: number): void {
        this.page.settings.choose("at-alpha", String(Number(alpha.toPrecision(6))));
        this.page.settings.choose("at-width", String(Number(width.toPrecision(6))));
        this.page.settled();
        this.drawMap();
        this.askCurve();
    }

    private openCurve(): void {
        const { settings } = this.page;
        const shared = [...new URLSearchParams(settings.query())].filter(([name]) => [...modelNames, "log-alpha"].includes(name));
        this.page.open("curve", {
            ...Object.fromEntries(shared),
            width: String(Math.min(2, Math.max(0.02, Number(this.selected()[1].toPrecision(3))))),
            "alpha-max": settings.text("alpha-max"),
        });
    }

    update(): void {
        const { page } = this;
        page.say("computing …", "busy");
        this.latest.ask((signal) =>
            tellFailure(page, signal, async () => {
                const start = performance.now();
                this.answer = await run("phase", this.mapOptions(), signal);
                this.drawMap();
                page.say(`${this.answer.points.length} points in ${Math.round(performance.now() - start)} ms`);
            }),
        );
        this.askCurve();
    }

    private askCurve(): void {
        const { page } = this;
        this.latestCurve.ask((signal) =>
            tellFailure(page, signal, async () => {
                const { alpha: _, "estimation-only": __, ...model } = this.curveOptions();
                [this.curve, this.thresholds] = await Promise.all([run("theory", this.curveOptions(), signal), run("threshold", model, signal)]);
                this.drawCurve();
            }),
        );
    }

    private drawMap(): void {
        if (!this.answer) return;
        const { points } = this.answer;
        const unique = (name: string) => [...new Set(points.map((point) => numberOf(point, name)))];
        const x = unique("alpha");
        const y = unique("width");
        const boundary = y.map((width, j): [number, number] => [numberOf(points[j * x.length], "strong_recovery"), width]);
        const [alpha, width] = this.selected();
        this.map.draw({
            x,
            y,
            values: points.map((point) => numberOf(point, "estimation_error")),
            xLabel: alphaLabel,
            yLabel: "width ρ = r/d",
            valueLabel: "estimation error",
            logarithmic: this.page.settings.on("log-alpha"),
            boundary: boundary.filter(([at]) => Number.isFinite(at)),
            boundaryLabel: "strong recovery",
            selected: [Math.min(Math.max(alpha, x[0]), x[x.length - 1]), Math.min(Math.max(width, y[0]), y[y.length - 1])],
        });
        this.numbers.show(points, ["alpha", "width", "estimation_error", "strong_recovery", "status"]);
    }

    private drawCurve(): void {
        if (!this.curve) return;
        const [alpha, width] = this.selected();
        const curve = pairs(this.curve, "alpha", "estimation_error");
        const error = curve.reduce((best, point) => (Math.abs(point[0] - alpha) < Math.abs(best[0] - alpha) ? point : best), curve[0]);
        const { alpha: _, ...model } = this.curveOptions();
        this.chart.draw({
            x: { label: alphaLabel, logarithmic: this.page.settings.on("log-alpha") },
            y: { label: "estimation error" },
            series: [{ label: modelLabel({ ...model, width: short(width) }), colour: 0, kind: "line", points: curve }],
            marks: [...thresholdMarks(this.thresholds), { x: error[0], y: error[1], label: `error ${short(error[1])} at α = ${short(error[0])}`, colour: 1 }],
        });
    }

    commands(): string[] {
        return [commandLine("phase", this.mapOptions()), commandLine("theory", this.curveOptions())];
    }

    python(): string {
        const options = this.mapOptions();
        const lines = pythonModel({ ...options, width: this.curveOptions().width }).split("\n");
        const prior = (options.attention ?? "tied") !== "tied" ? ', prior="bilinear"' : options.channel === "multi-head" ? `, prior=lambda width: bayesaim.MultiHead(${options.heads ?? 2}, width)` : "";
        return (
            lines.filter((text) => !text.startsWith("prior")).join("\n") +
            `diagram = bayesaim.phase(channel, ${JSON.stringify(options.alpha)}, ${JSON.stringify(options.width)}${prior})\n` +
            "print(diagram.estimation_error, diagram.strong_recovery)\n" +
            "bayesaim.plot.phase(diagram)\n"
        );
    }

    csv(): Promise<string> {
        return csv("phase", this.mapOptions());
    }

    leave(): void {
        this.latest.cancel();
        this.latestCurve.cancel();
    }
}
