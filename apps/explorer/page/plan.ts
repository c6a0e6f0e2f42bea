// SPDX-License-Identifier: MIT
// Plan my experiment: samples, memory and time for a target error.
import { Chart, type Mark } from "./chart";
import { alphaLabel, thresholdMarks } from "./curve";
import { isSlow, modelControls, modelLabel, modelOptions, withoutGeneralization } from "./model";
import { Latest, csv, run, type Options, type Report } from "./server";
import type { Control } from "./settings";
import { bytes, commandLine, duration, pythonModel, short, whole } from "./text";
import { Readout, pairs, tellFailure, type Page, type View } from "./view";

export class PlanView implements View {
    readonly controls: Control[] = [
        ...modelControls(["softmax", "hardmax", "linear", "deep-softmax", "multi-head"]),
        { name: "dim", label: "dimension d", kind: "range", initial: "1000", lowest: 10, highest: 100000, logarithmic: true, step: 1, group: "Target" },
        { name: "target-error", label: "target error", kind: "range", initial: "0.1", lowest: 0.001, highest: 1, logarithmic: true, group: "Target" },
        {
            name: "precision",
            label: "tokens in",
            kind: "choice",
            initial: "double",
            choices: () => [["double", "double precision"], ["float", "single precision"]],
            group: "Target",
        },
        {
            name: "token-storage",
            label: "tokens are",
            kind: "choice",
            initial: "memory",
            choices: () => [["memory", "kept in memory"], ["regenerate", "made again in each pass"]],
            group: "Target",
        },
    ];
    private page!: Page;
    private chart!: Chart;
    private readonly readout = new Readout();
    private readonly latest = new Latest();

    mount(place: HTMLElement, page: Page): void {
        this.page = page;
        this.readout.root.classList.add("large");
        place.append(this.readout.root);
        this.chart = new Chart(place, "Where the learning curve meets the target");
    }

    private options(): Options {
        const { settings } = this.page;
        const options: Options = {
            ...modelOptions(settings),
            dim: String(Math.round(settings.number("dim"))),
            "target-error": settings.text("target-error"),
        };
        for (const [name, value] of [["precision", "double"], ["token-storage", "memory"]])
            if (settings.text(name) !== value) options[name] = settings.text(name);
        return options;
    }

    update(): void {
        const { page } = this;
        const options = this.options();
        const model = modelOptions(page.settings);
        const slow = isSlow(page.settings);
        if (slow) page.say("computing …", "busy");
        this.latest.ask((signal) =>
            tellFailure(page, signal, async () => {
                const start = performance.now();
                const plan = await run("samples", options, signal);
                this.showNumbers(plan);
                const far = Number((1.6 * Math.max(plan.alpha ?? 1, 1e-3)).toPrecision(3));
                const [curve, thresholds] = await Promise.all([
                    run("theory", { ...model, alpha: `0:${far}:${slow ? 8 : 100}`, ...withoutGeneralization(page.settings) }, signal),
                    run("threshold", model, signal),
                ]);
                this.draw(plan, curve, thresholds);
                if (plan.alpha === null) page.say("No number of samples reaches this error.", "error");
                else page.say(`found in ${Math.round(performance.now() - start)} ms`);
            }),
        );
    }

    private showNumbers(plan: Report): void {
        this.readout.show([
            ["samples n", plan.samples === null ? "–" : whole(plan.samples), plan.samples],
            ["α = n/d²", short(plan.alpha), plan.alpha],
            ["memory", plan.estimated_bytes === undefined ? "–" : bytes(plan.estimated_bytes), plan.estimated_bytes],
            ["time of AMP here", plan.estimated_seconds === undefined ? "–" : duration(plan.estimated_seconds)],
            ["generalisation error there", short(plan.generalization_error), plan.generalization_error],
            ["error without data", short(plan.error_without_data), plan.error_without_data],
        ]);
    }

    private draw(plan: Report, curve: Report, thresholds: Report): void {
        const target = Number(plan.configuration.target_error);
        const found: Mark[] = plan.alpha > 0 ? [{ x: plan.alpha, y: plan.estimation_error, label: `n = ${whole(plan.samples)}`, colour: 1 }] : [];
        this.chart.draw({
            x: { label: alphaLabel },
            y: { label: "estimation error" },
            series: [{ label: modelLabel(modelOptions(this.page.settings)), colour: 0, kind: "line", points: pairs(curve, "alpha", "estimation_error") }],
            marks: [...thresholdMarks(thresholds), { y: target, label: `target ${short(target)}`, colour: 1 }, ...found],
        });
    }

    commands(): string[] {
        return [commandLine("samples", this.options())];
    }

    python(): string {
        const options = this.options();
        return (
            pythonModel(options) +
            `required = bayesaim.samples(prior, channel, target_error=${options["target-error"]}, dim=${options.dim})\n` +
            "print(required.samples, required.alpha, required.generalization_error)\n"
        );
    }

    csv(): Promise<string> {
        return csv("samples", this.options());
    }

    leave(): void {
        this.latest.cancel();
    }
}
