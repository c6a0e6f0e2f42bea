// SPDX-License-Identifier: MIT
// AMP while it runs, beside what state evolution predicts.
import { csvFormat } from "d3-dsv";
import { Chart, type Mark, type Series } from "./chart";
import { alphaLabel, thresholdMarks } from "./curve";
import { isSlow, modelControls, modelLabel, modelOptions, priorOptions, usualAlpha, withoutGeneralization } from "./model";
import { Latest, run, stream, type Options, type Point, type Report } from "./server";
import type { Control } from "./settings";
import { densityRange, densitySeries } from "./spectrum";
import { brief, commandLine, pythonModel, short } from "./text";
import { Numbers, Readout, numberOf, pairs, tellFailure, type Page, type View } from "./view";

const channels = ["softmax", "hardmax", "linear", "deep-softmax", "multi-head"];

export class AmpView implements View {
    readonly controls: Control[] = [
        ...modelControls(channels),
        {
            name: "alpha",
            label: "samples α = n/d²",
            kind: "range",
            initial: (of) => String(brief(0.4 * usualAlpha(of))),
            lowest: 0.01,
            highest: 20,
            logarithmic: true,
            group: "Problem",
        },
        { name: "dim", label: "dimension d", kind: "range", initial: (of) => (isSlow(of) ? "40" : "150"), lowest: 20, highest: 400, step: 10, group: "Problem" },
        { name: "seed", label: "seed", kind: "number", initial: "0", lowest: 0, highest: 1e9, step: 1, group: "Problem" },
        { name: "damping", label: "damping", kind: "range", initial: "0.5", lowest: 0, highest: 0.9, step: 0.05, group: "Problem" },
        { name: "iterations", label: "iterations at most", kind: "range", initial: "200", lowest: 1, highest: 500, step: 1, group: "Problem" },
    ];
    readonly actions = [
        { label: "Start AMP", run: () => this.start() },
        { label: "Stop", run: () => this.stop("stopped"), possible: () => this.end !== undefined },
    ];
    private page!: Page;
    private landing!: Chart;
    private progress!: Chart;
    private spectrum!: Chart;
    private readonly readout = new Readout();
    private readonly numbers = new Numbers();
    private readonly latest = new Latest();
    private readonly latestLaw = new Latest();
    private rows: Point[] = [];
    private curve?: Report;
    private trajectory?: Report;
    private thresholds?: Report;
    private law?: Report;
    private result?: Point; // of a run that has ended
    private end?: () => void;
    private frame = 0;

    mount(place: HTMLElement, page: Page): void {
        this.page = page;
        place.append(this.readout.root);
        this.landing = new Chart(place, "AMP on the learning curve", { ratio: 0.42, tallest: 330 });
        this.progress = new Chart(place, "Error of each iteration");
        this.spectrum = new Chart(place, "Spectrum of the noisy matrix R");
        place.append(this.numbers.root);
        this.show();
    }

    private options(): Options {
        const { settings } = this.page;
        const options: Options = { ...modelOptions(settings), alpha: settings.text("alpha"), dim: settings.text("dim") };
        for (const [name, value] of [["seed", "0"], ["damping", "0.5"], ["iterations", "200"]])
            if (settings.text(name) !== value) options[name] = settings.text(name);
        return options;
    }

    private trajectoryOptions = (): Options => ({
        ...modelOptions(this.page.settings),
        alpha: this.page.settings.text("alpha"),
        trajectory: "60",
    });

    /** The theory follows the settings; a run of other settings ends. */
    update(): void {
        const { page } = this;
        const { settings } = page;
        this.stop("");
        this.rows = [];
        this.law = this.result = undefined;
        const slow = isSlow(settings);
        const far = brief(Math.max(usualAlpha(settings), 1.5 * settings.number("alpha")));
        const curve = { ...modelOptions(settings), alpha: `0:${far}:${slow ? 8 : 80}`, ...withoutGeneralization(settings) };
        const iterates = { ...this.trajectoryOptions(), ...(slow ? { trajectory: "15" } : {}) };
        if (slow) page.say("computing the theory …", "busy");
        this.latest.ask((signal) =>
            tellFailure(page, signal, async () => {
                [this.trajectory, this.curve, this.thresholds] = await Promise.all([
                    run("theory", iterates, signal),
                    run("theory", curve, signal),
                    run("threshold", modelOptions(settings), signal),
                ]);
                this.show();
                if (!this.end) page.say("Ready: start AMP");
            }),
        );
        this.show();
    }

    private start(): void {
        const { page } = this;
        this.stop("");
        this.rows = [];
        this.law = this.result = undefined;
        page.say("sampling the data …", "busy");
        this.end = stream("amp", this.options(), {
            news: (row) => {
                this.rows.push(row);
                page.say(`iteration ${row.iteration}, error ${short(row.true_error)}`, "busy");
                if (!this.frame) this.frame = requestAnimationFrame(() => this.show());
                this.askLaw(row);
            },
            result: (report) => {
                this.setRunning(false);
                const point = (this.result = report.points[0]);
                const percent = numberOf(point, "difference_percent");
                page.say(
                    `${point.status} after ${point.iterations} iterations: error ${short(point.mean_error)}, theory ${short(point.theory_error)}` +
                        (Number.isFinite(percent) ? ` (${percent > 0 ? "+" : "−"}${Math.abs(percent).toFixed(1)}%)` : ""),
                );
                this.show();
            },
            failure: (message) => {
                this.setRunning(false);
                page.say(message, "error");
            },
        });
        this.setRunning(true);
    }

    private setRunning(on: boolean): void {
        if (!on) this.end = undefined;
        this.landing.root.parentElement!.setAttribute("aria-busy", String(on));
        this.page.refresh();
    }

    private stop(said: string): void {
        if (!this.end) return;
        this.end();
        this.setRunning(false);
        this.latestLaw.cancel();
        if (said) this.page.say(`${said} after ${this.rows.length} iterations`);
    }

    private askLaw(row: Point): void {
        const resolved = 1e-8; // smaller noise has the law of the prior
        if (!(row.eigenvalues as number[] | null)?.length || !(numberOf(row, "noise_variance") >= resolved)) return;
        const options = { ...priorOptions(this.page.settings), "noise-variance": String(row.noise_variance) };
        this.latestLaw.ask((signal) =>
            tellFailure(this.page, signal, async () => {
                this.law = await run("spectrum", options, signal);
                if (!this.frame) this.frame = requestAnimationFrame(() => this.show());
            }),
        );
    }

    private show(): void {
        const { result } = this;
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        const { settings } = this.page;
        const alpha = settings.number("alpha");
        const last = this.rows[this.rows.length - 1];
        const predicted = this.trajectory ? pairs(this.trajectory, "iteration", "estimation_error") : [];
        const fixed = predicted.length ? predicted[predicted.length - 1][1] : NaN;
        const measured = this.rows.map((row): [number, number] => [numberOf(row, "iteration"), numberOf(row, "true_error")]);
        const trail: Series = { label: `AMP, d = ${settings.text("dim")}`, colour: 1, kind: "dots", points: measured.map(([, error]) => [alpha, error]), silent: true };
        const marks: Mark[] = last ? [{ x: alpha, y: numberOf(last, "true_error"), label: "", colour: 1 }] : [{ x: alpha, label: `α = ${short(alpha)}` }];
        this.landing.draw({
            x: { label: alphaLabel },
            y: { label: "estimation error" },
            series: [
                { label: modelLabel(modelOptions(settings)), colour: 0, kind: "line", points: this.curve ? pairs(this.curve, "alpha", "estimation_error") : [] },
                ...(last ? [trail] : []),
            ],
            marks: [...thresholdMarks(this.thresholds), ...marks],
        });
        this.progress.draw({
            x: { label: "iteration", domain: [0, Math.max(30, measured.length)] },
            y: { label: "estimation error" },
            series: [
                { label: "state evolution, no damping", colour: 0, kind: "line", points: predicted },
                { label: "predicted by AMP", colour: 2, kind: "dashes", points: this.rows.map((row) => [numberOf(row, "iteration"), numberOf(row, "predicted_error")]) },
                { label: "measured", colour: 1, kind: "dots", points: measured },
            ].filter((one) => one.points.length > 0) as Series[],
            marks: Number.isFinite(fixed) ? [{ y: fixed, label: `fixed point ${short(fixed)}`, below: true }] : [],
        });
        const eigenvalues = (last?.eigenvalues as number[] | null) ?? null;
        const spectral = this.law ? densitySeries(this.law, eigenvalues, "eigenvalues of R") : [];
        this.spectrum.root.hidden = this.rows.length > 0 && !eigenvalues?.length;
        this.spectrum.draw({
            x: { label: "eigenvalue λ of R", domain: spectral.length ? [spectral[0].points[0][0], spectral[0].points[spectral[0].points.length - 1][0]] : [0, 1] },
            y: { label: "density", domain: spectral.length ? densityRange(spectral) : [0, 1] },
            series: spectral,
        });
        const error = result ? numberOf(result, "mean_error") : last ? numberOf(last, "true_error") : NaN;
        this.readout.show([
            ["measured error", short(error), Number.isFinite(error) ? error : null],
            ["theory", short(result ? result.theory_error : fixed), result ? numberOf(result, "theory_error") : null],
            ["iteration", String(this.rows.length), this.rows.length],
            ["noise variance D of R", short(last?.noise_variance)],
        ]);
        this.numbers.show(this.rows, ["iteration", "true_error", "predicted_error", "noise_variance", "change"]);
    }

    commands(): string[] {
        return [commandLine("amp", { ...this.options(), record: "iterations.csv" }), commandLine("theory", this.trajectoryOptions())];
    }

    python(): string {
        const { settings } = this.page;
        const options = this.options();
        return (
            pythonModel(options) +
            `data = bayesaim.generate(prior, channel, dim=${options.dim}, alpha=${options.alpha}, seed=${settings.text("seed")})\n` +
            `result = bayesaim.amp(data, prior, channel, damping=${settings.text("damping")}, max_iterations=${settings.text("iterations")})\n` +
            "print(result.error, result.predicted_error, result.status)\n"
        );
    }

    async csv(): Promise<string> {
        const rows = this.rows.map(({ eigenvalues, ...row }) => row);
        if (!rows.length) throw new Error("There are no iterations yet: start AMP");
        return csvFormat(rows);
    }

    leave(): void {
        this.stop("");
        this.latest.cancel();
        this.latestLaw.cancel();
    }
}
